# SPDX-License-Identifier: Apache-2.0
"""The kernel cache: a second process takes code from disk, and whatever is wrong there is a miss with a reason, never an error or other code."""

import hashlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

pytest.importorskip("baton._core", reason="the extension is not built")

import baton  # noqa: E402
from baton import cache  # noqa: E402

TEXT = "def @main(%x: Tensor[(2, WIDE), float32]) { nn.relu(subtract(%x, 1f)) }"
SOURCE = """
    import sys, json, baton
    from baton import cache
    text = "def @main(%x: Tensor[(2, {}), float32]) {{ nn.relu(subtract(%x, 1f)) }}"
    for wide in sys.argv[1:]:
        baton.compile(text.format(wide))
    print(json.dumps(cache.events()))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of an empty cache that is on, for this process and those that it starts."""
    monkeypatch.setenv("BATON_CACHE", "1")
    monkeypatch.setenv("BATON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BATON_CACHE_SIZE", raising=False)
    return tmp_path / "cache" / "kernels"


def right(wide=8, **options):
    """Compiles, checks the result, and gives what became of the look-ups."""
    before = len(cache.events())
    model = baton.compile(TEXT.replace("WIDE", str(wide)), **options)
    x = np.linspace(-3, 3, 2 * wide, dtype=np.float32).reshape(2, wide)
    np.testing.assert_array_equal(model(x).numpy(), np.maximum(x - 1, 0))
    return cache.events()[before:]


def reasons(events):
    return [event.get("reason", event["what"]) for event in events if event["what"] in ("hit", "miss")]


def elsewhere(*wides, code=SOURCE, **env):
    """The events of another process that compiles models so wide."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, wides)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, env={**os.environ, **env}).stdout)


def entry(folder):
    (path,) = folder.glob("*.kernel")
    return path


def test_hit_in_a_second_process(folder):
    assert reasons(elsewhere(8)) == ["new"]
    assert reasons(elsewhere(8)) == ["hit"]
    events = right()
    assert reasons(events) == ["hit"]


def test_folder_and_files_are_this_users_alone(folder):
    right()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert entry(folder).stat().st_mode & 0o077 == 0


def test_no_weights_are_kept(folder):
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    x = baton.relay.var("x", shape=(1, 64))
    mod = baton.IRModule.from_expr(baton.relay.Function([x], baton.relay.nn.dense(x, baton.relay.const(weights))))
    baton.compile(mod)
    kept = b"".join(path.read_bytes() for path in folder.glob("*.kernel"))
    assert kept and weights[5, :4].tobytes() not in kept and weights[:4, 5].tobytes() not in kept
    before = len(cache.events())
    other = baton.IRModule.from_expr(baton.relay.Function([x], baton.relay.nn.dense(x, baton.relay.const(2 * weights))))
    data = np.ones((1, 64), np.float32)
    got = baton.compile(other)(data).numpy()
    assert set(reasons(cache.events()[before:])) == {"hit"}
    np.testing.assert_allclose(got, data @ (2 * weights).T, rtol=1e-4, atol=1e-4)


def test_a_new_model_misses_as_new_and_another_shape_as_structure(folder):
    assert reasons(right(8)) == ["new"]
    assert reasons(right(12)) == ["structure"]
    assert reasons(right(12)) == ["hit"]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names processors of x86-64")
def test_another_target_misses(folder):
    assert reasons(right(target="llvm -mcpu=x86-64-v2")) == ["new"]
    assert reasons(right(target="llvm -mcpu=x86-64")) == ["target"]
    assert reasons(right(target="llvm -mcpu=x86-64-v2")) == ["hit"]


def test_another_build_of_the_compiler_misses(folder):
    right()
    path = entry(folder)
    functions, target, build, code = path.name.split("-")
    path.rename(folder / "-".join([functions, target, "0" * len(build), code]))
    assert reasons(right()) == ["version"]


def test_another_format_misses(folder):
    right()
    path = entry(folder)
    data = bytearray(path.read_bytes()[:-32])
    data[8] = 77
    path.write_bytes(bytes(data) + hashlib.sha256(data).digest())
    events = right()
    assert reasons(events) == ["version"] and "format 77" in events[0]["why"]
    assert reasons(right()) == ["hit"]


def test_an_entry_under_the_name_of_another_misses(folder):
    right(8)
    small = entry(folder)
    right(12)
    (large,) = set(folder.glob("*.kernel")) - {small}
    shutil.copyfile(small, large)
    events = right(12)
    assert reasons(events) == ["corrupt"] and "name of another" in events[0]["why"]


def test_mutants_are_misses(folder):
    right()
    path = entry(folder)
    good, chance = path.read_bytes(), random.Random(0)
    for i in range(200):
        bad = bytearray(good)
        if i % 2:
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        elif i % 4:
            del bad[chance.randrange(len(bad)) :]
        else:
            at = chance.randrange(len(bad))
            del bad[at : at + chance.randint(1, 64)]
        path.write_bytes(bad)
        assert reasons(right()) == ["corrupt"], f"mutant {i}"
        assert path.read_bytes() != bytes(bad), "it is made anew"
    path.write_bytes(good)
    assert reasons(right()) == ["hit"]


def test_evicted_entries_miss_and_the_bound_is_kept(folder, monkeypatch):
    right(8)
    most = 8 * entry(folder).stat().st_size
    monkeypatch.setenv("BATON_CACHE_SIZE", str(most))
    wide_of = {}
    for wide in range(9, 24):
        events = right(wide)
        wide_of[events[0]["name"]] = wide
        assert reasons(right(8)) == ["hit"], "what was used last stays"
        assert sum(path.stat().st_size for path in folder.iterdir()) <= most
    gone = [event["name"] for event in cache.events() if event["what"] == "evicted" and event["name"] in wide_of]
    assert [wide_of[name] for name in gone] == list(range(9, 9 + len(gone))), "what was not used for longest goes first"
    assert reasons(right(wide_of[gone[-1]])) == ["evicted"]
    assert cache.stats()["evicted"] > 0


def test_an_entry_larger_than_the_bound_is_not_kept(folder, monkeypatch):
    monkeypatch.setenv("BATON_CACHE_SIZE", "100")
    events = right()
    assert [event["what"] for event in events] == ["miss", "not kept"]
    assert not list(folder.glob("*.kernel"))


def test_it_can_be_turned_off(folder, monkeypatch):
    with baton.transform.PassContext(config={"codegen.cache": False}):
        baton.relay.build(baton.relay.parse('#[version = "0.0.5"]\n' + TEXT.replace("WIDE", "8")))
    assert right(config={"codegen.cache": False}) == []
    for name, value in (("BATON_CACHE", "0"), ("BATON_CACHE_SIZE", "0")):
        with monkeypatch.context() as only:
            only.setenv(name, value)
            assert right() == [] and cache.place()["off"]
    assert not folder.exists()


@pytest.mark.parametrize(
    "name, value", [("BATON_CACHE", "yes"), ("BATON_CACHE_SIZE", "large"), ("BATON_CACHE_SIZE", "1GB"), ("BATON_CACHE_SIZE", "99999999999T")]
)
def test_a_variable_that_means_nothing_is_an_error(folder, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=f'{name} is "{value}"'):
        right()


def test_where_it_is(monkeypatch, tmp_path):
    for name in ("BATON_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.place()["folder"] == str(tmp_path / ".cache/baton/kernels")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.place()["folder"] == str(tmp_path / ".cache/baton/kernels")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache.place()["folder"] == str(tmp_path / "x/baton/kernels")
    monkeypatch.setenv("BATON_CACHE_DIR", str(tmp_path / "y"))
    assert cache.place()["folder"] == str(tmp_path / "y/kernels")
    monkeypatch.delenv("BATON_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    assert "BATON_CACHE_DIR" in cache.place()["off"]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o702])
def test_a_folder_that_others_write_to_is_not_trusted(folder, mode):
    right()
    folder.chmod(mode)
    events = right()
    assert reasons(events) == (["untrusted"] if mode & 0o022 else ["hit"])
    if mode & 0o022:
        assert "can be written by other users" in events[0]["why"] and events[1]["what"] == "not kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
@pytest.mark.parametrize("which", ["folder", "file"])
def test_what_belongs_to_another_user_is_not_trusted(folder, which):
    right()
    os.chown(folder if which == "folder" else entry(folder), 12345, -1)
    events = right()
    assert reasons(events) == ["untrusted"] and "belongs to user 12345" in events[0]["why"]


def test_files_that_others_write_to_links_and_pipes_are_not_trusted(folder, tmp_path):
    right()
    path = entry(folder)
    path.chmod(0o622)
    assert reasons(right()) == ["untrusted"]
    path.rename(tmp_path / "aside")
    path.symlink_to(tmp_path / "aside")
    assert reasons(right()) == ["untrusted"]
    path.unlink()
    os.mkfifo(path)
    assert reasons(right()) == ["untrusted"]
    assert reasons(right()) == ["hit"], "it is made anew"


def test_a_folder_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BATON_CACHE", "1")
    monkeypatch.setenv("BATON_CACHE_DIR", str(tmp_path / "file"))
    events = right()
    assert [event["what"] for event in events] == ["miss", "not kept"] and events[0]["reason"] == "unreadable"
    assert cache.place()["problem"] and cache.events()


def mounted(place, options, command):
    """Runs a command where `place` is a file system of its own; skips where that cannot be had."""
    unshare = ["unshare", "-m", "sh", "-c"]
    script = f'mount -t tmpfs -o {options} none "$0" && shift 0 && exec "$@"'
    if not shutil.which("unshare") or subprocess.run([*unshare, 'mount -t tmpfs none "$0"', str(place)], capture_output=True).returncode:
        pytest.skip("no file systems can be mounted here")
    return subprocess.run([*unshare, script, str(place), *command], stdout=subprocess.PIPE, text=True, check=True)


def test_a_full_disk_is_a_miss(folder, tmp_path):
    place = tmp_path / "cache"
    place.mkdir()
    done = mounted(place, "size=4k", [sys.executable, "-c", textwrap.dedent(SOURCE), "8", "8"])
    events = json.loads(done.stdout)
    assert [event["what"] for event in events] == ["miss", "not kept"] * 2 and "space" in events[1]["why"]


def test_a_limit_of_file_sizes_is_a_miss(folder):
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n" + textwrap.dedent(SOURCE)
    events = elsewhere(8, 8, code=code)
    assert [event["what"] for event in events] == ["miss", "not kept"] * 2 and "large" in events[1]["why"]
    assert not list(folder.glob(".tmp*"))
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_a_read_only_folder_gives_hits_and_keeps_nothing(folder, tmp_path):
    right()
    place = tmp_path / "cache"
    kept = tmp_path / "kept"
    shutil.move(folder, kept)
    script = f'cp -a {kept} {place}/kernels && mount -o remount,ro {place} && exec "$@"'
    done = mounted(place, "size=1m", ["sh", "-c", script, "sh", sys.executable, "-c", textwrap.dedent(SOURCE), "8", "12"])
    events = json.loads(done.stdout)
    assert [event["what"] for event in events] == ["hit", "miss", "not kept"] and "read-only" in events[2]["why"].lower()


def test_processes_that_write_at_once(folder):
    wides = [str(wide) for wide in range(4, 24)]
    children = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(SOURCE), *chosen], stdout=subprocess.PIPE)
        for chosen in (wides, wides, wides[::-1], wides[::-1])
    ]
    for child in children:
        out, _ = child.communicate()
        assert child.returncode == 0
        assert {event["what"] for event in json.loads(out)} <= {"hit", "miss", "kept"}
    assert len(cache.entries()) == len(wides) and not any(row["problem"] for row in cache.entries())
    assert reasons(elsewhere(*wides)) == ["hit"] * len(wides)


def test_threads_that_write_at_once(folder):
    code = """
        import sys, json, threading, baton
        from baton import cache
        text = "def @main(%x: Tensor[(2, {}), float32]) {{ nn.relu(subtract(%x, 1f)) }}"
        def work():
            for wide in sys.argv[1:]:
                baton.compile(text.format(wide))
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(json.dumps(cache.events()))
    """
    assert {event["what"] for event in elsewhere(*range(4, 12), code=code)} <= {"hit", "miss", "kept"}
    assert reasons(elsewhere(*range(4, 12))) == ["hit"] * 8


def test_writers_that_are_killed(folder):
    code = """
        import baton, itertools
        text = "def @main(%x: Tensor[(2, {}), float32]) {{ nn.relu(subtract(%x, 1f)) }}"
        for wide in itertools.count(4):
            baton.compile(text.format(wide))
            print("begins", flush=True)
    """
    chance = random.Random(0)
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
        with child:
            assert child.stdout.readline() == b"begins\n"
            time.sleep(chance.uniform(0.05, 0.5))
            child.send_signal(signal.SIGKILL)
    rows = cache.entries()
    assert rows and not any(row["problem"] for row in rows)
    assert reasons(right(4)) == ["hit"]


def test_what_killed_writers_left_is_removed(folder):
    right()
    left, young = folder / ".tmp-1-0", folder / ".tmp-2-0"
    left.write_bytes(b"half")
    young.write_bytes(b"half")
    os.utime(left, (0, 0))
    right(12)
    assert not left.exists() and young.exists()


def test_artifacts_are_the_same_with_and_without(folder, tmp_path, monkeypatch):
    def artifact(name):
        baton.compile(TEXT.replace("WIDE", "8")).save(tmp_path / name)
        return (tmp_path / name).read_bytes()

    cold, warm = artifact("cold.so"), artifact("warm.so")
    monkeypatch.setenv("BATON_CACHE", "0")
    assert cold == warm == artifact("off.so")


def test_passes_run_on_a_hit(folder):
    @baton.instrument.pass_instrument
    class Names:
        def __init__(self):
            self.seen = []

        def run_before_pass(self, mod, info):
            self.seen.append(info.name)

    first, second = Names(), Names()
    assert reasons(right(instruments=[first])) == ["new"]
    assert reasons(right(instruments=[second])) == ["hit"]
    assert first.seen == second.seen and "FuseOps" in first.seen


def test_debug_levels_are_entries_of_their_own(folder):
    assert reasons(right(config={"llvm.debug_info": "names"})) == ["new"]
    assert reasons(right(config={"llvm.debug_info": "lines"})) == ["structure"]
    assert reasons(right(config={"llvm.debug_info": "lines"})) == ["hit"]


def test_export_and_import(folder, tmp_path, monkeypatch):
    right(8)
    right(12)
    assert cache.export(tmp_path / "all.tar") == 2
    assert cache.clear() == 2 and cache.entries() == []
    assert cache.import_file(tmp_path / "all.tar") == 2
    assert reasons(right(8) + right(12)) == ["hit", "hit"]


def test_damaged_exports_take_nothing_in(folder, tmp_path):
    for wide in range(4, 8):
        right(wide)
    cache.export(tmp_path / "all.tar")
    good, chance = (tmp_path / "all.tar").read_bytes(), random.Random(0)
    cache.clear()
    for i in range(60):
        bad = bytearray(good)
        if i % 2:
            del bad[chance.randrange(len(bad.rstrip(b"\0"))) :]
        else:
            bad[chance.randrange(1024)] ^= 1 << chance.randrange(8)
        (tmp_path / "bad.tar").write_bytes(bad)
        try:
            cache.import_file(tmp_path / "bad.tar")
        except ValueError:
            assert cache.entries() == []
        else:  # a field of the tar's own that means nothing here
            assert i % 2 == 0 and len(cache.entries()) == 4 and not any(row["problem"] for row in cache.entries())
            cache.clear()
    with pytest.raises(ValueError, match="not an export"):
        cache.import_file(__file__)
