# SPDX-License-Identifier: Apache-2.0
"""What holds for all Python tests, and golden files as tests."""

import os
import sys
from pathlib import Path

import pytest

# Every module that a pass makes is checked for well-formedness; children that tests start do so too.
os.environ.setdefault("BATON_VERIFY_PASSES", "1")
# Code is made anew, whatever this machine compiled before; tests of the kernel cache have a folder of their own.
os.environ["BATON_CACHE"] = "0"
sys.path.append(str(Path(__file__).parent / "golden"))


REWRITTEN = []  # golden files that --bless changed


def pytest_addoption(parser):
    parser.addoption("--bless", action="store_true", help="rewrite the expectations of golden files to what is printed now")
    parser.addoption("--long", action="store_true", help="also the tests that take minutes; without it shorter forms of them run")


def pytest_collect_file(file_path, parent):
    import golden

    if file_path.suffix in (".relay", ".tir") and golden.is_golden(file_path):
        return GoldenFile.from_parent(parent, path=file_path)
    return None


class GoldenFile(pytest.File):
    """A golden file: a test a case, or one that rewrites it."""

    def collect(self):
        import golden

        if self.config.getoption("--bless"):
            yield Bless.from_parent(self, name="bless")
            return
        try:
            read = golden.read(self.path)
        except ValueError as error:
            raise self.CollectError(str(error)) from None
        names = {}
        for case in read.cases:
            names[case.title] = names.get(case.title, 0) + 1
            title = case.title if names[case.title] == 1 else f"{case.title} ({names[case.title]})"
            item = GoldenItem.from_parent(self, name=title)
            item.golden, item.case = read, case
            yield item


class GoldenItem(pytest.Item):
    """One case of a golden file."""

    def runtest(self):
        import golden

        golden.check(self.golden, self.case)

    def repr_failure(self, excinfo):
        where = f"{self.golden.path}:{self.case.line}: {self.case.title}"
        return f"{where}\n{excinfo.value}" if isinstance(excinfo.value, AssertionError) else super().repr_failure(excinfo)

    def reportinfo(self):
        return self.path, self.case.line - 1, f"golden: {self.name}"


class Bless(pytest.Item):
    """Rewrites a golden file where its expectations do not hold."""

    def runtest(self):
        import golden

        new = golden.blessed(golden.read(self.path))
        if new != self.path.read_text(encoding="utf-8"):
            self.path.write_text(new, encoding="utf-8")
            REWRITTEN.append(self.path)


def pytest_terminal_summary(terminalreporter):
    for path in REWRITTEN:
        terminalreporter.write_line(f"blessed {path}")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--bless"):
        items[:] = [item for item in items if isinstance(item, Bless)]
    if not config.getoption("--long"):
        left_out = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where `./dev test` has built everything (BATON_BUILT=1), a test that skips because something is not built fails."""
    report = yield
    if report.skipped and "not built" in str(report.longrepr) and os.environ.get("BATON_BUILT") == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} says that something is not built, but the build succeeded: {report.longrepr}"
    return report
