# SPDX-License-Identifier: Apache-2.0
"""What holds for all Python tests."""

import os

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Where `./dev test` has built everything (BATON_BUILT=1), a test that skips because something is not built fails."""
    report = yield
    if report.skipped and "not built" in str(report.longrepr) and os.environ.get("BATON_BUILT") == "1":
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} says that something is not built, but the build succeeded: {report.longrepr}"
    return report
