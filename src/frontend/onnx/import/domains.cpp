// SPDX-License-Identifier: Apache-2.0
#include "domains.h"

namespace baton::onnx {
namespace {

struct Row {
  std::string_view prefix;  ///< of the domain
  const char* advice;
};

/// The first row that fits is taken.
constexpr Row kRows[] = {
    {"com.microsoft.dml", "it is of ONNX Runtime's DirectML provider; optimise the model for the CPU provider instead"},
    {"com.microsoft",
     "it is of ONNX Runtime and not imported; give the model as it was before ONNX Runtime's tools, or optimise it "
     "with ORT_ENABLE_BASIC"},
    {"com.ms.internal",
     "it is internal to ONNX Runtime's layout optimiser; save the optimised model with ORT_ENABLE_EXTENDED or lower"},
    {"ai.onnx.contrib",
     "it is of onnxruntime-extensions; export the model without the pre- and post-processing and do these outside"},
    {"com.microsoft.extensions",
     "it is of onnxruntime-extensions; do the pre- and post-processing outside of the model"},
    {"ai.onnx.preview.training", "it is one of ONNX's training operators; export the model for inference"},
    {"ai.onnx.training", "it is one of ONNX's training operators; export the model for inference"},
    {"org.pytorch",
     "it is an operator of PyTorch that its exporter found no ONNX for; export with "
     "`operator_export_type=OperatorExportTypes.ONNX` or a newer opset, or rewrite that part of the model"},
    {"aten",
     "it is an operator of PyTorch that its exporter found no ONNX for; export with a newer opset, or rewrite that "
     "part of the model"},
    {"pkg.onnxscript",
     "it is a function of PyTorch's exporter, whose body is not in the file; export with `optimize=True`, "
     "which inlines it"},
    {"pkg.torch",
     "it is a module that PyTorch's exporter kept as a function, whose body is not in the file; export without "
     "`export_modules_as_functions`"},
    {"mmdeploy", "it is of OpenMMLab's MMDeploy; export with its backend `onnxruntime` and without custom operators"},
    {"mmcv", "it is of OpenMMLab's MMCV; export with MMDeploy and without custom operators"},
    {"com.nvidia", "it is of a plug-in of NVIDIA's; export the model without TensorRT's plug-ins"},
    {"trt", "it is of a plug-in of TensorRT; export the model without TensorRT's plug-ins"},
    {"org.openvinotoolkit", "it is of OpenVINO; export the model without OpenVINO's operators"},
    {"com.intel", "it is of Intel's tools; export the model without OpenVINO's operators"},
    {"com.qti", "it is of Qualcomm's tools; export the model before they convert it"},
    {"com.vai", "it is of AMD's quantizer; quantize with `quant_format=QuantFormat.QDQ` and ONNX's own types"},
    {"com.amd", "it is of AMD's quantizer; quantize with `quant_format=QuantFormat.QDQ` and ONNX's own types"},
    {"qonnx", "it is of QONNX; convert the model to QuantizeLinear and DequantizeLinear with qonnx-convert"},
    {"finn", "it is of FINN; export the model before FINN transforms it"},
    {"onnx.brevitas", "it is of Brevitas; export with `export_onnx_qcdq`"},
    {"tf", "it is an operator of TensorFlow that tf2onnx found no ONNX for; convert with a newer `--opset`"},
    {"ai.onnx.converters.tensorflow",
     "it is an operator of TensorFlow that tf2onnx found no ONNX for; convert with a newer `--opset`"},
    {"com.xgboost", "it is of XGBoost's own tools; convert with onnxmltools"},
};

bool Fits(std::string_view domain, std::string_view prefix) {
  return domain.substr(0, prefix.size()) == prefix &&
         (domain.size() == prefix.size() || domain[prefix.size()] == '.' || domain[prefix.size()] == '_');
}

}  // namespace

bool IsOnnxRuntimeDomain(std::string_view domain) {
  return domain == "com.microsoft" || domain == "com.microsoft.nchwc";
}

std::string DomainAdvice(std::string_view domain) {
  if (domain.empty() || domain == "ai.onnx" || domain == "ai.onnx.ml") return "";
  for (const Row& row : kRows) {
    if (Fits(domain, row.prefix)) return row.advice;
  }
  return "it is an operator of the tool that wrote the file; export it as operators of ONNX, or as a function whose "
         "body is "
         "in the file";
}

}  // namespace baton::onnx
