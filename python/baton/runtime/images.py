# SPDX-License-Identifier: Apache-2.0
"""ONNX's ImageDecoder as a function of the host, by the package Pillow where it is installed."""

from __future__ import annotations

from .._ffi import register_func
from ..error import UnsupportedError


def decoded(data: bytes, pixel_format: str):
    """The pixels of an image file: (height, width, channels), uint8. `pixel_format`: RGB, BGR or Grayscale."""
    import io

    import numpy as np

    try:
        from PIL import Image
    except ImportError:
        raise UnsupportedError("ImageDecoder needs the package Pillow, which is not installed; mend with: pip install pillow") from None
    modes = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
    if pixel_format not in modes:
        raise ValueError(f"ImageDecoder: `pixel_format` is {pixel_format!r}; it is {', '.join(modes)}")
    try:
        pixels = np.array(Image.open(io.BytesIO(data)).convert(modes[pixel_format]))
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise ValueError(f"ImageDecoder: the image cannot be read: {error}") from None
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    return np.ascontiguousarray(pixels[:, :, ::-1] if pixel_format == "BGR" else pixels)


@register_func("host.onnx.ImageDecoder")
def _image_decoder(params):
    """The function over arrays for a node's attributes, as functions of libbaton_host are made."""
    import json

    from .ndarray import array

    pixel_format = json.loads(str(params)).get("pixel_format", "RGB")
    return lambda encoded: array(decoded(encoded.numpy().tobytes(), pixel_format))


__all__ = ["decoded"]
