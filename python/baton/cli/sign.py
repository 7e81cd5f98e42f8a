# SPDX-License-Identifier: Apache-2.0
"""`baton sign`: a signature for a compiled model."""

from __future__ import annotations

import argparse

from . import arguments
from .errors import file_error
from .terminal import note


def add_parser(verbs, verb, text):
    parser = arguments.add_verb(
        verbs, verb, text,
        "  openssl genpkey -algorithm ed25519 -out key.pem        # once: keep it secret\n"
        "  openssl pkey -in key.pem -pubout -out key.pub          # for every loader\n"
        "  baton sign model.so --key key.pem                      # writes model.so.sig\n"
        "  baton sign model.so --check key.pub",
    )  # fmt: skip
    parser.add_argument("model", help="a compiled model").complete = "file"
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--key", metavar="FILE", help="private key (Ed25519, PEM): write a signature").complete = "file"
    which.add_argument("--check", metavar="FILE", help="public key (PEM): check the signature and the model, without loading it").complete = "file"
    parser.add_argument("-s", "--signature", metavar="FILE", help="the signature's file (default: MODEL.sig)").complete = "file"
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from .._ffi import get_global_func
    from ..driver import signature

    read_manifest = get_global_func("runtime.ReadManifest")
    try:
        if args.key:
            read_manifest(args.model)  # a damaged file is not signed
            note(f"wrote {signature.sign(args.model, args.key, args.signature)}")
        else:
            signature.verify(args.model, args.check, args.signature)
            read_manifest(args.model)
            note(f"{args.model}: signed with the key of {args.check}")
    except OSError as error:
        raise file_error(error) from None
    return 0
