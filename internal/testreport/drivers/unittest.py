"""Runs unittest as `python -m unittest` does, and writes each result to a file.

    python -m toryo_unittest FOLDER [arguments of unittest]

The names of the tests to run may be in FOLDER/only.json. All is in one function, as code of
the project finds what is in the module __main__.
"""


def main():
    import json
    import os
    import sys
    import unittest

    import toryo_changes as changes

    leave, name_of = os._exit, "test_" + os.urandom(8).hex()
    folder = sys.argv.pop(1)
    sys.path[:] = [p for p in sys.path if p != folder]
    del sys.modules["toryo_changes"]
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and p != folder)
    if not os.environ["PYTHONPATH"]:
        del os.environ["PYTHONPATH"]

    only = None
    if os.path.exists(os.path.join(folder, "only.json")):
        with open(os.path.join(folder, "only.json")) as file:
            only = set(json.load(file))
    write = changes.writer(os.path.join(folder, "unittest.jsonl"))
    state = {"written": 0, "failed": 0, "changed": 0}
    changed = []  # has one function, as the variables of the functions that it looks at may not change

    class Result(unittest.TextTestResult):
        """Keeps the worst outcome of each test, and writes it when the test has ended."""

        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.ended = {}

        def note(self, test, status, message=""):
            name = test.id()
            if self.ended.get(name, ("",))[0] != "failed":
                self.ended[name] = (status, str(message)[:4000])

        def flush(self):
            for name, (status, message) in self.ended.items():
                write(case=str(name), status=status, message=message)
                state["written"] += 1
                state["failed"] += status == "failed"
            self.ended = {}

        def stopTest(self, test):
            state["changed"] += changed[0]()
            super().stopTest(test)
            self.note_missing(test)
            self.flush()

        def note_missing(self, test):
            # A failed subtest leaves no result of the test around it.
            if test.id() not in self.ended and not self.ended:
                self.note(test, "failed", "it has no result")

        def addSuccess(self, test):
            super().addSuccess(test)
            self.note(test, "passed")

        def addFailure(self, test, error):
            super().addFailure(test, error)
            self.note(test, "failed", self._exc_info_to_string(error, test))

        def addError(self, test, error):
            super().addError(test, error)
            self.note(test, "failed", self._exc_info_to_string(error, test))
            if not isinstance(test, unittest.TestCase):  # setUpClass, setUpModule
                self.flush()

        def addSkip(self, test, reason):
            super().addSkip(test, reason)
            self.note(test, "skipped", reason)
            if not isinstance(test, unittest.TestCase):
                self.flush()

        def addExpectedFailure(self, test, error):
            super().addExpectedFailure(test, error)
            self.note(test, "skipped", "expected to fail")

        def addUnexpectedSuccess(self, test):
            super().addUnexpectedSuccess(test)
            self.note(test, "failed", "it was expected to fail, and passed")

        def addSubTest(self, test, subtest, error):
            super().addSubTest(test, subtest, error)
            if error is not None:
                self.note(subtest, "failed", self._exc_info_to_string(error, test))

    def cases(suite):
        for test in suite:
            if isinstance(test, unittest.TestSuite):
                yield from cases(test)
            elif test is not None:
                yield test

    class Runner(unittest.TextTestRunner):
        resultclass = Result

        def run(self, test):
            if only is not None:
                named = {name.split(" (")[0].split(" [")[0] for name in only} | only
                test = unittest.TestSuite(t for t in cases(test) if t.id() in named)
            return super().run(test)

    def plain(_):
        assert 1 == 2

    def control():
        """A test that has to fail, by each of the usual assertions."""
        if state["changed"] or changed[0]():
            return "passed"
        assertions = [
            lambda t: t.assertEqual(1, 2),
            lambda t: t.assertTrue(False),
            lambda t: t.assertFalse(True),
            lambda t: t.assertIn(1, [2]),
            lambda t: t.assertIsNone(1),
            lambda t: t.assertRaises(ValueError, lambda: None),
            lambda t: t.fail("control"),
            plain,
        ]
        for assertion in assertions:
            kind = type(name_of, (unittest.TestCase,), {name_of: assertion})
            result = unittest.TestResult()
            kind(name_of).run(result)
            if len(result.failures) != 1 or result.wasSuccessful():
                return "passed"
        return "failed"

    changed.append(changes.watch(changes.MODULES, [*changes.KINDS, Result, Runner], changes.DECIDING + ("note", "flush")))
    program = unittest.main(module=None, argv=["python -m unittest"] + sys.argv[1:], testRunner=Runner, exit=False)
    code = 0
    if state["failed"] or not program.result.wasSuccessful():
        code = 1
    elif program.result.testsRun == 0 and not program.result.skipped:
        code = 5
    write(control=control())
    sys.stdout.flush()
    sys.stderr.flush()
    write(end=state["written"])
    leave(code)  # what the project's code has registered for the end could change the report


main()
