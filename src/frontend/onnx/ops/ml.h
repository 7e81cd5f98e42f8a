// SPDX-License-Identifier: Apache-2.0
/// \file ml.h
/// What the operators of ai.onnx.ml share.
#pragma once

#include "common.h"

namespace baton::onnx {

inline constexpr const char* kMl = "ai.onnx.ml";

/// A vector of an attribute's floats.
Value FloatList(Ctx& c, DataType t, const std::vector<float>& v);

/// The type that models compute in: float64 for inputs of it, else float32.
DataType ScoreType(DataType input);

/// The attribute `post_transform` applied to (N, C) scores: NONE, LOGISTIC, SOFTMAX, SOFTMAX_ZERO or PROBIT.
Value PostTransform(Ctx& c, const Value& scores, const std::string& name);

/// The labels of a classifier, integers or strings.
struct Classes {
  Dims numbers;
  std::vector<std::string> texts;
  int64_t size() const { return static_cast<int64_t>(texts.empty() ? numbers.size() : texts.size()); }
};
/// The labels at places (N).
Value LabelAt(Ctx& c, const Classes& classes, const Value& places);

/// ONNX Runtime's result for the one score of two classes, (N, 1), as (label, (N, 2) scores). `positive`: all weights
/// are at least 0, so that the score is a probability.
Values BinaryScores(Ctx& c, const Classes& classes, const Value& score, bool positive,
                    const std::string& post_transform);
/// The label and the scores of (N, C), C at least 2.
Values ManyScores(Ctx& c, const Classes& classes, const Value& scores, const std::string& post_transform);

}  // namespace baton::onnx
