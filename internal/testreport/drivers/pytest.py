"""A plugin of pytest that writes each result to a file beside itself.

Every process that runs tests (pytest-xdist has several) also runs controls: tests
that have to fail, one in each folder that has tests, so that the hooks of a
conftest.py which apply to the tests apply to them. All is in one function, as code of the
project finds what is in the module.
"""


def plugin():
    import json
    import os
    import sys
    import unittest

    import pluggy
    import pytest
    import toryo_changes as changes
    from _pytest import nodes, python, reports, runner
    from _pytest import unittest as cases

    del sys.modules["toryo_changes"]
    folder = os.path.dirname(os.path.abspath(__file__))
    name_of = "test_" + os.urandom(8).hex()
    protocol = runner.runtestprotocol
    only = None
    if os.path.exists(os.path.join(folder, "only.json")):
        with open(os.path.join(folder, "only.json")) as file:
            only = set(json.load(file))

    def changes_of_runner():
        """Returns two functions: what is not as it was now, and what is not at the end.

        Plugins change how a TestCase of unittest is run: some put it back (pytest-django), some
        change only what is not looked at (pytest-subtests).
        """
        manager = [vars(pluggy)[name] for name in ("HookImpl", "PluginManager", "HookCaller", "Result") if name in vars(pluggy)]
        manager += [vars(sys.modules["pluggy." + module])[name] for module, name in (("_hooks", "HookCaller"), ("_result", "_Result"), ("_result", "Result"))
                    if "pluggy." + module in sys.modules and name in vars(sys.modules["pluggy." + module])]  # fmt: skip
        kinds = [nodes.Node, nodes.Item, python.Function, runner.CallInfo, runner.SetupState, reports.BaseReport, reports.TestReport, *manager]
        modules = [module for module in (runner, sys.modules.get("pluggy._callers")) if module]
        deciding = (*changes.DECIDING, "pass", "skip", "_hook", "get_", "call", "_get", "__init", "setup", "tear", "_to", "_from", "force")
        every = changes.watch((*changes.MODULES, *modules), [*changes.KINDS, *kinds], deciding)
        last = changes.watch((pytest, python), [cases.TestCaseFunction], ("runtest", "addError", "addFailure", "addUnexpected", "_addexcinfo"))
        return every, lambda: every() or last()

    changed, changed_at_end = changes_of_runner()

    def no_exception():
        with pytest.raises(ValueError):
            pass

    def plain():
        assert 1 == 2

    def control():
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

    def reporter(config):
        worker = getattr(config, "workerinput", {}).get("workerid", "main")
        controller = worker == "main"
        runs = not controller or not config.getoption("numprocesses", None)
        write = changes.writer(os.path.join(folder, "pytest-" + worker + ".jsonl"))
        ended, reported = {}, set()
        state = {"written": 0, "changed": 0}

        def case(name, status, message):
            state["written"] += 1
            reported.add(name)
            write(case=str(name), file=str(name.split("::")[0]), status=status, message=str(message))

        def reason_of(report):
            return report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr

        def controls(session):
            folders = {}
            for item in getattr(session, "items", []):
                module = item.getparent(pytest.Module)
                if module is not None:
                    folders.setdefault(os.path.dirname(str(module.fspath)), module)
            for module in folders.values():
                item = pytest.Function.from_parent(module, name=name_of, callobj=control)
                outcomes = [report.outcome for report in protocol(item, log=False, nextitem=None)]
                write(control="failed" if "failed" in outcomes and not state["changed"] else "passed")

        class Reporter:
            @pytest.hookimpl(trylast=True)
            def pytest_collection_modifyitems(self, config, items):
                if only is not None:
                    left_out = [item for item in items if item.nodeid not in only]
                    items[:] = [item for item in items if item.nodeid in only]
                    config.hook.pytest_deselected(items=left_out)

            @pytest.hookimpl(tryfirst=True)
            def pytest_runtest_logreport(self, report):
                if runs:
                    state["changed"] += changed()
                if not controller:
                    return
                worst = ended.get(report.nodeid)
                if report.failed:
                    ended[report.nodeid] = ("failed", str(report.longrepr)[-4000:])
                elif hasattr(report, "wasxfail") and not worst:
                    reason = ": " + report.wasxfail if report.wasxfail else ""
                    ended[report.nodeid] = ("skipped", "expected to fail" + (", but passed" if report.passed else "") + reason)
                elif report.skipped and not (worst and worst[0] == "failed"):
                    ended[report.nodeid] = ("skipped", reason_of(report))
                elif report.when == "call" and not worst:
                    ended[report.nodeid] = ("passed", "")
                if report.when == "teardown":
                    case(report.nodeid, *ended.pop(report.nodeid, ("failed", "it has no result")))

            @pytest.hookimpl(tryfirst=True)
            def pytest_collectreport(self, report):
                if not controller:
                    return
                if report.failed:
                    case(report.nodeid or "collection", "failed", str(report.longrepr)[-4000:])
                elif report.skipped:
                    case(report.nodeid, "skipped", reason_of(report))

            @pytest.hookimpl(tryfirst=True)
            def pytest_sessionfinish(self, session):
                if runs:
                    state["changed"] += changed_at_end()
                    controls(session)
                if controller and runs:
                    missing = [item.nodeid for item in getattr(session, "items", []) if item.nodeid not in reported]
                    if missing:
                        write(doubt="%d tests did not run to their end, the first is %s" % (len(missing), missing[0]))
                write(end=state["written"])

        return Reporter(), runs

    def configure(config):
        if config.getoption("collectonly", False):
            return
        made, runs = reporter(config)
        config.pluginmanager.register(made, "toryo-reporter")
        # A pytest that a test starts is not the one that is reported. Workers of
        # pytest-xdist load the plugin because of these variables.
        ours = ("PYTHONPATH", os.pathsep, folder), ("PYTEST_ADDOPTS", " ", "-p toryo_pytest")
        for name, separator, value in ours if runs else ():
            os.environ[name] = os.environ.get(name, "").replace(value, "").strip(separator)
            if not os.environ[name]:
                del os.environ[name]

    return configure


pytest_configure = plugin()
