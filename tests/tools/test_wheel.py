# SPDX-License-Identifier: Apache-2.0
"""What `./dev wheel --portable` adds to pip's wheel, and the stubs that it links against; nothing is built here."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from devtool import portable, wheel  # noqa: E402
from devtool.step import StepFailed  # noqa: E402


@pytest.mark.parametrize(
    "version, there",
    [
        ("GLIBCXX_3.4", True),
        ("GLIBCXX_3.4.9", True),
        ("GLIBCXX_3.4.25", True),
        ("GLIBCXX_3.4.26", False),
        ("GLIBCXX_3.4.30", False),
        ("CXXABI_1.3", True),
        ("CXXABI_1.3.11", True),
        ("CXXABI_1.3.12", False),
        ("CXXABI_TM_1", False),
        ("CXXABI_FLOAT128", False),
        ("GLIBC_2.17", False),
    ],
)
def test_symbols_of_gcc_8_are_admitted(version, there):
    assert portable.admitted(version) == there


def test_the_stub_has_the_symbols_with_their_versions_and_kinds(tmp_path):
    symbols = [
        ("_Znwm", "GLIBCXX_3.4", "function", False),
        ("_ZSt4cout", "GLIBCXX_3.4", "object", False),
        ("_ZSt11__once_call", "GLIBCXX_3.4.11", "tls_object", False),
        ("__cxa_begin_catch", "CXXABI_1.3", "function", True),
    ]
    assembly, script = portable.stub_sources(symbols)
    assert script.splitlines() == ["CXXABI_1.3 { };", "GLIBCXX_3.4 { };", "GLIBCXX_3.4.11 { };"]
    (tmp_path / "stub.s").write_text(assembly)
    (tmp_path / "stub.map").write_text(script)
    done = subprocess.run(
        ["g++", "-shared", "-nostdlib", "-Wl,--version-script=stub.map", "stub.s", "-o", "stub.so"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert sorted(portable.symbols_of(tmp_path / "stub.so")) == sorted(symbols)


def test_what_is_linked_has_a_licence():
    command = (
        "c++ -shared -o baton/_core.cpython-311-x86_64-linux-gnu.so CMakeFiles/baton.dir/a.cpp.o libbaton_runtime.so /usr/lib/llvm-19/lib/libLLVMCore.a /usr/lib/llvm-19/lib/liblldELF.a "
        "/usr/lib/x86_64-linux-gnu/libz.a libnanobind-static.a /x/build-portable/stubs/lib/libc.so.6 /x/stubs/lib/libc_nonshared.a /gcc/crtbeginS.o"
    )
    assert wheel.unlicensed(command) == []
    assert wheel.unlicensed(command + " /usr/lib/llvm-19/lib/libPolly.a /usr/lib/libxml2.a /usr/lib/libtinfo.so.6") == [
        "libPolly.a",
        "libtinfo.so.6",
        "libxml2.a",
    ]


def test_each_licence_has_an_expression_and_a_text(monkeypatch):
    monkeypatch.setitem(wheel.LINKED, "zlib", ([], "Zlib", str(ROOT / "LICENSE")))
    assert wheel.licence_texts(["zlib"]) == {"zlib": (ROOT / "LICENSE").read_text()}
    assert "3-Clause" in wheel.LINKED["nanobind"][1] and "Redistribution" in wheel.licence_texts(["nanobind"])["nanobind"]
    monkeypatch.setitem(wheel.LINKED, "zlib", ([], "Zlib", "/no/copyright"))
    with pytest.raises(StepFailed, match="licence of zlib"):
        wheel.licence_texts(["zlib"])


@pytest.fixture
def raw(tmp_path):
    """A wheel as pip makes it."""
    path = tmp_path / "thing-1.0-cp311-cp311-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("thing/__init__.py", "")
        out.writestr("thing/lib/a.so", b"\x7fELF")
        out.writestr(
            "thing-1.0.dist-info/METADATA", "Metadata-Version: 2.4\nName: thing\nVersion: 1.0\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\n\nText.\n"
        )
        out.writestr("thing-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n\n")
        out.writestr("thing-1.0.dist-info/RECORD", "")
    return path


def test_a_packed_wheel_is_whole_and_says_what_it_has(raw, tmp_path, monkeypatch):
    monkeypatch.setitem(wheel.LINKED, "LLVM", (["libLLVM*.a"], "Apache-2.0 WITH LLVM-exception", str(ROOT / "LICENSE")))
    made = wheel.pack(raw, tmp_path / "out", wheel.tag_of(["3.10", "3.11"]), ["LLVM"], [("thing/_core.cpython-310.so", b"core")])
    assert made.name == "thing-1.0-cp310.cp311-cp310.cp311-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(made) as whole:
        names = whole.namelist()
        record = whole.read("thing-1.0.dist-info/RECORD").decode().splitlines()
        assert sorted(line.split(",")[0] for line in record) == sorted(names)
        assert {"thing/_core.cpython-310.so", "thing-1.0.dist-info/licenses/LICENSE", "thing-1.0.dist-info/licenses/third_party/LLVM.txt"} <= set(names)
        info = whole.read("thing-1.0.dist-info/WHEEL").decode().splitlines()
        assert [line for line in info if line.startswith("Tag")] == [f"Tag: cp{v}-cp{v}-manylinux_2_28_x86_64" for v in (310, 311)]
        lines = whole.read("thing-1.0.dist-info/METADATA").decode().splitlines()
        assert "License-Expression: Apache-2.0 AND (Apache-2.0 WITH LLVM-exception)" in lines
        assert [line for line in lines if line.startswith("License-File")] == ["License-File: LICENSE", "License-File: third_party/LLVM.txt"]
        assert lines[-1] == "Text."
        assert [whole.getinfo(n).external_attr >> 16 & 0o777 for n in ("thing/__init__.py", "thing/lib/a.so")] == [0o644, 0o755]


def test_the_same_files_give_the_same_bytes(raw, tmp_path):
    first = wheel.pack(raw, tmp_path / "one", wheel.tag_of([]), ["nanobind"]).read_bytes()
    assert wheel.pack(raw, tmp_path / "two", wheel.tag_of([]), ["nanobind"]).read_bytes() == first


def test_a_wheel_without_an_extension_module_is_for_any_python():
    assert wheel.tag_of([]) == "py3-none-manylinux_2_28_x86_64"


def test_what_auditwheel_says_is_understood():
    assert wheel.oldest_glibc('x.whl is consistent\nwith the following platform tag: "manylinux_2_27_x86_64".') == (2, 27)
    assert wheel.oldest_glibc('x.whl is consistent with the following platform\ntag:\n"linux_x86_64".') is None


def test_pythons_are_asked_for_their_headers(monkeypatch):
    monkeypatch.setenv("BATON_PYTHONS", "/no/python3")
    found = wheel.pythons()
    assert found and set(found) <= set(wheel.PYTHONS)
    assert list(found) == sorted(found, key=wheel.PYTHONS.index)
