# SPDX-License-Identifier: Apache-2.0
"""Writes src/frontend/onnx/reader/op_versions.inc: in which operator-set versions each ONNX operator changed.

Run it with a new `onnx` package installed, from the root of the project: python tools/onnx_op_versions.py
"""

import collections
import pathlib

import onnx
from onnx import defs


def main():
    versions = collections.defaultdict(list)
    functions = set()
    for schema in defs.get_all_schemas_with_history():
        versions[schema.domain, schema.name].append((schema.since_version, schema.deprecated))
        if schema.has_function or schema.has_context_dependent_function:
            functions.add((schema.domain, schema.name))
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        f"// Written by tools/onnx_op_versions.py from onnx {onnx.__version__}; do not edit.",
        "// Domain, operator, versions that changed it; `-` before a version: deprecated from there on; `*`: ONNX defines",
        "// the operator by a function body.",
    ]
    for (domain, name), since in sorted(versions.items()):
        text = " ".join(("-" if deprecated else "") + str(v) for v, deprecated in sorted(since))
        star = " *" if (domain, name) in functions else ""
        lines.append(f'{{"{domain}", "{name}", "{text}{star}"}},')
    path = pathlib.Path(__file__).parent.parent / "src/frontend/onnx/reader/op_versions.inc"
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
