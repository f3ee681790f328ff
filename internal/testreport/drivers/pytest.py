"""A plugin of pytest that writes each result to a file beside itself.

Every process that runs tests (pytest-xdist has several) also runs controls: tests
that have to fail, one in each folder that has tests, so that the hooks of a
conftest.py which apply to the tests apply to them.
"""
import json
import os
import unittest

import pytest
from _pytest.reports import TestReport
from _pytest.runner import CallInfo, runtestprotocol

folder = os.path.dirname(os.path.abspath(__file__))
only = None
if os.path.exists(os.path.join(folder, "only.json")):
    with open(os.path.join(folder, "only.json")) as file:
        only = set(json.load(file))


def functions():
    """What decides about tests, as it is now."""
    found = {("pytest", name): getattr(pytest, name) for name in ("raises", "fail", "approx", "warns")}
    for kind in unittest.TestCase, CallInfo, TestReport:
        for name, value in vars(kind).items():
            if name.startswith(("assert", "fail", "from_", "_base", "_format")) and (callable(value) or isinstance(value, classmethod)):
                found[kind, name] = value, getattr(value, "__code__", None)
    return found


before = functions()


def control_test():
    now = functions()
    if any(now.get(which) != function for which, function in before.items()):
        return
    case = unittest.TestCase()
    for assertion in (
        lambda: case.assertEqual(1, 2),
        lambda: case.assertTrue(False),
        lambda: case.assertIn(1, [2]),
        no_exception,
        plain,
    ):
        try:
            assertion()
        except (AssertionError, pytest.fail.Exception):
            continue
        return
    assert [1] == [2], "control"


def no_exception():
    with pytest.raises(ValueError):
        pass


def plain():
    assert 1 == 2


class Reporter:
    def __init__(self, config):
        worker = getattr(config, "workerinput", {}).get("workerid", "main")
        self.controller = worker == "main"
        self.runs = not self.controller or not config.getoption("numprocesses", None)
        self.out = open(os.path.join(folder, "pytest-" + worker + ".jsonl"), "w", encoding="utf-8")
        self.written = 0
        self.ended = {}
        self.reported = set()

    def write(self, **line):
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        if only is not None:
            left_out = [item for item in items if item.nodeid not in only]
            items[:] = [item for item in items if item.nodeid in only]
            config.hook.pytest_deselected(items=left_out)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report):
        if not self.controller:
            return
        worst = self.ended.get(report.nodeid)
        if report.failed:
            self.ended[report.nodeid] = ("failed", str(report.longrepr)[-4000:])
        elif hasattr(report, "wasxfail") and not worst:
            reason = ": " + report.wasxfail if report.wasxfail else ""
            self.ended[report.nodeid] = ("skipped", "expected to fail" + (", but passed" if report.passed else "") + reason)
        elif report.skipped and not (worst and worst[0] == "failed"):
            reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
            self.ended[report.nodeid] = ("skipped", str(reason))
        elif report.when == "call" and not worst:
            self.ended[report.nodeid] = ("passed", "")
        if report.when == "teardown":
            status, message = self.ended.pop(report.nodeid, ("failed", "it has no result"))
            self.case(report.nodeid, status, message)

    def case(self, name, status, message):
        self.written += 1
        self.reported.add(name)
        self.write(case=name, file=name.split("::")[0], status=status, message=message)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report):
        if not self.controller:
            return
        if report.failed:
            self.case(report.nodeid or "collection", "failed", str(report.longrepr)[-4000:])
        elif report.skipped:
            reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
            self.case(report.nodeid, "skipped", str(reason))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session):
        if self.runs:
            self.controls(session)
        if self.controller and self.runs:
            missing = [item.nodeid for item in getattr(session, "items", []) if item.nodeid not in self.reported]
            if missing:
                self.write(doubt="%d tests did not run to their end, the first is %s" % (len(missing), missing[0]))
        self.write(end=self.written)
        self.out.close()

    def controls(self, session):
        folders = {}
        for item in getattr(session, "items", []):
            module = item.getparent(pytest.Module)
            if module is not None:
                folders.setdefault(os.path.dirname(str(module.fspath)), module)
        for module in folders.values():
            item = pytest.Function.from_parent(module, name="test_control", callobj=control_test)
            outcomes = [report.outcome for report in runtestprotocol(item, log=False, nextitem=None)]
            self.write(control="failed" if "failed" in outcomes else "passed")


def pytest_configure(config):
    if config.getoption("collectonly", False):
        return
    reporter = Reporter(config)
    config.pluginmanager.register(reporter, "toryo-reporter")
    # A pytest that a test starts is not the one that is reported. Workers of
    # pytest-xdist load the plugin because of these variables.
    ours = ("PYTHONPATH", os.pathsep, folder), ("PYTEST_ADDOPTS", " ", "-p toryo_pytest")
    for name, separator, value in ours if reporter.runs else ():
        os.environ[name] = os.environ.get(name, "").replace(value, "").strip(separator)
        if not os.environ[name]:
            del os.environ[name]
