# SPDX-License-Identifier: Apache-2.0
"""Journals survive a kill at any byte."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

import baton
from baton.rpc.journal import Journal, JournalError, TrialJournal, content_hash, scan

RECORDS = [{"n": n, "text": "é\n" * n} for n in range(6)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal"


def written(path):
    with Journal(path) as journal:
        journal.append(*RECORDS[:3])
        for record in RECORDS[3:]:
            journal.append(record)
    return path.read_bytes()


def test_a_file_cut_at_any_byte_keeps_its_whole_lines(path):
    data = written(path)
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    for cut in range(len(data) + 1):
        whole = sum(end <= cut for end in ends)
        path.write_bytes(data[:cut])
        with Journal(path, sync=False) as journal:
            assert journal.records == RECORDS[:whole]
            journal.append({"after": cut})
        with Journal(path, sync=False) as journal:
            assert journal.records == [*RECORDS[:whole], {"after": cut}]


def test_a_damaged_byte_is_never_a_wrong_record(path):
    data = written(path)
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 0x15
        try:
            records, _ = scan(bytes(changed))
        except JournalError as error:
            assert "is damaged" in str(error)
        else:
            assert records == RECORDS[: len(records)] and len(records) >= 5  # the last line alone may be missing


def test_random_files_are_an_error_or_empty(path):
    rng = random.Random(5)
    data = written(path)
    for _ in range(3000):
        pieces = [data[rng.randrange(len(data)) :][: rng.randrange(80)], rng.randbytes(rng.randrange(40)), b"\n", b"00000000 00000000 \n"]
        try:
            records, end = scan(b"".join(rng.sample(pieces, len(pieces))))
        except JournalError:
            continue
        assert end >= 0 and all(isinstance(record, dict) for record in records)


def test_one_process_writes(path):
    with Journal(path), pytest.raises(JournalError, match="written by another process"):
        Journal(path)
    Journal(path).close()


def test_a_rewritten_journal_stays_locked_and_goes_on(path):
    written(path)
    with Journal(path) as journal:
        journal.rewrite([{"all": 1}])
        journal.append({"more": 2})
        with pytest.raises(JournalError, match="written by another process"):
            Journal(path)
    with Journal(path) as journal:
        assert journal.records == [{"all": 1}, {"more": 2}]
    assert os.listdir(path.parent) == ["journal"]


def test_a_full_disk_leaves_no_half_line(path, monkeypatch):
    with Journal(path) as journal:
        journal.append(RECORDS[0])
        real = os.write

        def full(file, view):
            if len(view) > 5:
                return real(file, view[:5])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(JournalError, match="No space left on device"):
            journal.append(RECORDS[1])
        monkeypatch.setattr(os, "write", real)
        journal.append(RECORDS[2])
    with Journal(path) as journal:
        assert journal.records == [RECORDS[0], RECORDS[2]]


def test_a_journal_is_private(path):
    written(path)
    assert path.stat().st_mode & 0o777 == 0o600


# Trials.


def square(trial):
    return {"square": trial["x"] ** 2}


TRIALS = [{"x": x, "tile": [x, 8]} for x in range(40)]


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_trials_run_on_any_executor(path, kind):
    with kind(2) as executor, TrialJournal(path) as journal:
        assert journal.run(executor, square, TRIALS) == [square(trial) for trial in TRIALS]
    with TrialJournal(path) as journal:
        assert journal.run(None, None, TRIALS) == [square(trial) for trial in TRIALS]  # nothing is left to run
        assert TRIALS[3] in journal and journal[TRIALS[3]] == {"square": 9}


def test_a_trial_is_known_by_its_content(path):
    calls = []

    def run(trial):
        calls.append(trial)
        return len(calls)

    with ThreadPoolExecutor(1) as executor, TrialJournal(path, of="conv2d") as journal:
        assert journal.run(executor, run, [{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 2}]) == [1, 1, 2]
    with ThreadPoolExecutor(1) as executor, TrialJournal(path, of="dense") as journal:
        assert journal.run(executor, run, [{"a": 1, "b": 2}]) == [3]  # another workload
    assert content_hash({"b": [1, 2.5, None], "a": 0}) == content_hash({"a": 0, "b": [1, 2.5, None]}) != content_hash({"a": 0})


def test_a_trial_that_raises_stops_the_run_and_keeps_the_others(path):
    def run(trial):
        if trial == 5:
            raise ValueError("trial 5 fails")
        return trial

    with ThreadPoolExecutor(2) as executor, TrialJournal(path) as journal:
        with pytest.raises(ValueError, match="trial 5 fails"):
            journal.run(executor, run, range(100), most=2)
        assert 5 <= len(journal) < 10


def test_trials_are_values_of_json(path):
    with TrialJournal(path) as journal, pytest.raises(TypeError):
        journal.record(object(), 1)


def test_a_journal_of_something_else_is_refused(path):
    written(path)
    with pytest.raises(JournalError, match="something else than trials"):
        TrialJournal(path)


TUNER = """
import os, sys, time, random
from concurrent.futures import ThreadPoolExecutor
from baton.rpc.journal import TrialJournal
path, count = sys.argv[1], int(sys.argv[2])
def measure(trial):
    time.sleep(random.random() * 0.002)
    return {"of": trial["n"], "by": os.getpid()}
with ThreadPoolExecutor(4) as executor, TrialJournal(path) as journal:
    journal.run(executor, measure, [{"n": n} for n in range(count)], most=8)
"""


def killed_at_random(path, count, kills, seed):
    """A tuner is killed so many times, started again, and runs to its end; gives the records and how often it was killed."""
    rng, done = random.Random(seed), 0
    environment = {**os.environ, "PYTHONPATH": str(Path(baton.__file__).parents[1])}
    while True:
        child = subprocess.Popen([sys.executable, "-c", TUNER, str(path), str(count)], env=environment)
        if done < kills:
            started = time.monotonic()
            size = path.stat().st_size if path.exists() else 0
            while child.poll() is None and time.monotonic() - started < 30:  # until it has written something
                if path.exists() and path.stat().st_size > size:
                    break
                time.sleep(0.001)
            time.sleep(rng.random() * 0.05)
            child.send_signal(signal.SIGKILL)
            done += child.wait() == -signal.SIGKILL
        else:
            assert child.wait() == 0
            return scan(path.read_bytes())[0], done
        if child.returncode == 0:
            return scan(path.read_bytes())[0], done


def check_trials(path, count, kills, seed):
    records, done = killed_at_random(path, count, kills, seed)
    trials = [record["input"]["n"] for record in records]
    assert sorted(trials) == list(range(count)), "a trial is lost, or there twice"
    assert all(record["result"]["of"] == record["input"]["n"] for record in records)
    return done


def test_kills_lose_no_trial_and_do_none_twice(path):
    assert check_trials(path, 400, 6, 1) >= 4


@pytest.mark.slow
def test_a_thousand_kills(path):
    # As many as fit: a quick machine is through with its trials before.
    assert check_trials(path, 5000, 1000, 2) >= 20
