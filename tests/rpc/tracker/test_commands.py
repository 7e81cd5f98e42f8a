# SPDX-License-Identifier: Apache-2.0
"""Help and errors of `baton rpc-tracker` and `baton rpc-proxy`, as golden files; each refusal says what to type."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fakes import register

import baton as package
from baton.rpc import proxy
from baton.rpc.tracker import connect_tracker

HERE = Path(__file__).parent / "commands"
COMMANDS = {
    "tracker_help": ["-m", "baton", "rpc-tracker", "--help"],
    "proxy_help": ["-m", "baton", "rpc-proxy", "--help"],
    "tracker_port": ["-m", "baton", "rpc-tracker", "--port", "70000"],
    "tracker_option": ["-m", "baton", "rpc-tracker", "--jurnal", "x"],
    "tracker_renew": ["-m", "baton", "rpc-tracker", "--renew", "0"],
    "tracker_journal": ["-m", "baton", "rpc-tracker", "--host", "unix:t", "--journal", "none/journal"],
    "tracker_folder": ["-m", "baton", "rpc-tracker", "--host", "unix:none/t"],
    "tracker_nothing_there": ["-m", "baton.exec.query_rpc_tracker", "--host", "unix:none"],
    "proxy_without_key": ["-m", "baton", "rpc-proxy", "--host", "0.0.0.0"],
    "proxy_join": ["-m", "baton", "rpc-proxy", "--join", "proxy://gate:9191"],
    "proxy_address": ["-m", "baton", "rpc-proxy", "--join", "gate:9191", "--server", "127.0.0.1:9090"],
    "proxy_server": ["-m", "baton", "rpc-proxy", "--join", "proxy://gate:9191", "--server", "9090"],
    "proxy_web_port": ["-m", "baton", "rpc-proxy", "--web-port", "9443"],
    "proxy_web_cert": ["-m", "baton", "rpc-proxy", "--web-port", "0", "--web-cert", "none.pem"],
    "proxy_key_file": ["-m", "baton", "rpc-proxy", "--key-file", "none"],
}


def environment():
    return {**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1]), "COLUMNS": "120"}


def start(arguments, folder):
    return subprocess.Popen([sys.executable, *arguments], cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_prints(name, tmp_path):
    done = subprocess.run([sys.executable, *COMMANDS[name]], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    printed = f"{done.stdout}{done.stderr}exit code {done.returncode}\n"
    golden = HERE / f"{name}.txt"
    if os.environ.get("BATON_BLESS"):
        golden.write_text(printed)
    assert printed == golden.read_text()
    assert "Traceback" not in printed and "internal error" not in printed


@pytest.mark.parametrize("program", [["-m", "baton", "rpc-tracker"], ["-m", "baton.exec.rpc_tracker"]], ids=["baton", "exec"])
def test_the_tracker_serves_until_it_is_told_to_end(program, tmp_path):
    child = start([*program, "--host", "unix:t"], tmp_path)
    assert child.stdout.readline() == "tracker at unix:t\n"
    url = f"unix:{tmp_path / 't'}"
    with register(url), connect_tracker(url) as session:
        asked = subprocess.run(
            [sys.executable, "-m", "baton.exec.query_rpc_tracker", "--host", url], env=environment(), capture_output=True, text=True, timeout=60
        )
        assert asked.stdout == session.text_summary() and "board" in asked.stdout
    child.send_signal(signal.SIGTERM)
    assert child.wait(20) == 0 and not (tmp_path / "t").exists()
    assert child.stderr.read() == ""


def test_the_proxy_serves_until_it_is_told_to_end(tmp_path):
    child = start(["-m", "baton", "rpc-proxy", "--port", "0"], tmp_path)
    line = child.stdout.readline()
    assert line.startswith("proxy at proxy://127.0.0.1:")
    joined = start(["-m", "baton", "rpc-proxy", "--join", line.split()[-1], "--server", "127.0.0.1:9"], tmp_path)
    assert proxy.parse(joined.stdout.readline().split()[-1])[2]
    for one in (joined, child):
        one.send_signal(signal.SIGTERM if one is child else signal.SIGINT)
        assert one.wait(20) == (0 if one is child else 130)
