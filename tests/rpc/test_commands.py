# SPDX-License-Identifier: Apache-2.0
"""Help and errors of `baton rpc-server`, `rpc-key`, `baton-rpc-server` and `python -m baton.exec...`, as golden files; each refusal says what to type."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import baton as package
from baton.rpc.server import program

HERE = Path(__file__).parent / "commands"
SERVER, KEY = ["-m", "baton", "rpc-server"], ["-m", "baton", "rpc-key"]
COMMANDS = {
    "server_help": [*SERVER, "--help"],
    "server_address": [*SERVER, "--listen", "host"],
    "server_without_key": [*SERVER, "--listen", "tls://0.0.0.0:0"],
    "server_folder": [*SERVER, "--listen", "unix:none/s"],
    "server_option": [*SERVER, "--lisen", "x"],
    "server_web_socket": [*SERVER, "--listen", "wss://gate:1"],
    "key_help": [*KEY, "--help"],
    "key_where": [*KEY, "new"],
    "key_token_where": [*KEY, "narrow", "none"],
    "key_which": [*KEY, "show"],
    "key_none": [*KEY, "show", "none"],
    "key_as_much": [*KEY, "narrow", "none", "-o", "t"],
    "key_when": [*KEY, "narrow", "none", "-o", "t", "--expires", "soon"],
    "exec_server_help": ["-m", "baton.exec.rpc_server", "--help"],
    "exec_tracker_help": ["-m", "baton.exec.rpc_tracker", "--help"],
    "exec_query_help": ["-m", "baton.exec.query_rpc_tracker", "--help"],
    "program_help": ["--help"],
    "program_option": ["--lisen", "x"],
    "program_value": ["--listen"],
    "program_number": ["--idle", "soon"],
    "program_without_key": ["--listen", "tls://0.0.0.0:0"],
    "program_signers": ["--load", "signed", "--listen", "unix:s"],
    "program_policy": ["--policy", "none", "--listen", "unix:s"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_prints(name, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1]), "COLUMNS": "120"}
    command = [program() if name.startswith("program") else sys.executable, *COMMANDS[name]]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    printed = f"{done.stdout}{done.stderr}exit code {done.returncode}\n"
    golden = HERE / f"{name}.txt"
    if os.environ.get("BATON_BLESS"):
        HERE.mkdir(exist_ok=True)
        golden.write_text(printed)
    assert printed == golden.read_text()
    assert "Traceback" not in printed and "internal error" not in printed
