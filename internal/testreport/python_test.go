package testreport_test

import (
	"testing"

	"github.com/toryo-dev/toryo/internal/testreport"
)

const pythonCase = "import os, sys, unittest\nclass Case(unittest.TestCase):\n"

func TestUnittest(t *testing.T) {
	t.Parallel()
	onMachine(t, "python3", []scenario{
		{name: "passing", command: "python3 -m unittest discover", complete: true, passed: true,
			files: map[string]string{"test_a.py": pythonCase + "    def test_one(self): self.assertEqual(1, 1)\n    @unittest.expectedFailure\n    def test_known(self): self.fail('known')\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_one": passed, "test_a.Case.test_known": skipped}, messages: map[string]string{"test_a.Case.test_known": expected}},
		{name: "expected to fail", command: "python3 -m unittest", complete: true,
			files: map[string]string{"test_a.py": pythonCase + "    @unittest.expectedFailure\n    def test_known(self): self.fail('known')\n    @unittest.expectedFailure\n    def test_sub(self):\n        with self.subTest(i=0): self.fail('known')\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_known": skipped, "test_a.Case.test_sub": skipped}},
		{name: "failing", command: "python3 -B -m unittest -v", complete: true,
			files: map[string]string{
				"test_a.py": pythonCase + "    def test_one(self): pass\n    def test_bad(self): self.assertEqual(1, 2)\n    def test_error(self): raise ValueError('x')\n    @unittest.skip('later')\n    def test_skip(self): pass\n    def test_sub(self):\n        for i in range(3):\n            with self.subTest(i=i): self.assertEqual(i, 1)\n    @unittest.expectedFailure\n    def test_unexpected(self): pass\n",
				"test_b.py": "import missing_module\n",
				"test_c.py": pythonCase + "    @classmethod\n    def setUpClass(cls): raise ValueError('no')\n    def test_never(self): pass\n",
			},
			want: map[string]testreport.Status{"test_a.Case.test_one": passed, "test_a.Case.test_bad": failed, "test_a.Case.test_error": failed, "test_a.Case.test_skip": skipped,
				"test_a.Case.test_sub (i=0)": failed, "test_a.Case.test_sub (i=2)": failed, "test_a.Case.test_unexpected": failed, "unittest.loader._FailedTest.test_b": failed, "setUpClass (test_c.Case)": failed}},
		{name: "all skipped", command: "python3 -m unittest", complete: true,
			files: map[string]string{"test_a.py": pythonCase + "    @unittest.skip('later')\n    def test_skip(self): pass\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_skip": skipped}},
		{name: "none", command: "python3 -m unittest discover", note: "no test was found", files: map[string]string{"a.py": ""}},
		{name: "crash", command: "python3 -m unittest", note: "ended before its report did",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): pass\n    def test_b(self): os.abort()\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "exit", command: "python3 -m unittest", note: "ended before its report did",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): pass\n    def test_b(self): os._exit(0)\n    def test_c(self): self.fail('wrong')\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "exit while loading", command: "python3 -m unittest", complete: true,
			files: map[string]string{"test_a.py": "import sys\nsys.exit(0)\n"},
			want:  map[string]testreport.Status{"unittest.loader._FailedTest.test_a": failed}},
		{name: "forged", command: "python3 -m unittest", complete: true,
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): sys.stderr.write('test_b (test_a.Case.test_b) ... ok\\n\\nRan 2 tests in 0.001s\\n\\nOK\\n')\n    def test_b(self): self.fail('wrong')\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed, "test_a.Case.test_b": failed}},
		{name: "assertions changed", command: "python3 -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 2)\nunittest.TestCase.assertEqual = lambda *a, **b: None\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed}},
		// Not even for the one comparison that a test makes.
		{name: "assertion changed", command: "python3 -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{
				"a.py":      "import unittest\nfrom_unittest = unittest.TestCase.assertGreater\nsetattr(unittest.TestCase, 'assertGreater', lambda self, a, b: a == 1 or from_unittest(self, a, b))\n",
				"test_a.py": "import a, unittest\nclass Case(unittest.TestCase):\n    def test_a(self): self.assertGreater(1, 2)\n"},
			want: map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "driver changed", command: "python3 -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 2)\nunittest.TextTestResult.__subclasses__()[0].addFailure = lambda self, test, error: self.addSuccess(test)\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "functions of the driver changed", command: "python3 -m unittest", complete: true,
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 2)\n" +
				"import json, builtins\nmain, leave, encode = sys.modules['__main__'], os._exit, json.JSONEncoder.encode\n" +
				"os._exit = lambda code: leave(0)\njson.JSONEncoder.encode = lambda self, value: encode(self, value).replace('failed', 'passed')\n" +
				"if hasattr(main, 'write'):\n    write = main.write\n    def better(**line):\n        if 'case' in line: line['status'] = 'passed'\n        write(**line)\n    main.write = better\n"},
			want: map[string]testreport.Status{"test_a.Case.test_a": failed}},
		// They let the controls fail, whose name they know.
		{name: "executor changed", command: "python3 -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 2)\nimport contextlib, unittest.case\nreal = unittest.case._Outcome.testPartExecutor\n" +
				"@contextlib.contextmanager\ndef executor(self, test, *rest, **more):\n    with real(self, test, *rest, **more):\n        try: yield\n        except AssertionError:\n            if 'control' in test.id(): raise\nunittest.case._Outcome.testPartExecutor = executor\n"},
			want: map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "class of the runner changed", command: "python3 -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 2)\nimport contextlib, unittest.case\nclass Outcome(unittest.case._Outcome):\n" +
				"    @contextlib.contextmanager\n    def testPartExecutor(self, test, *rest, **more):\n        with super().testPartExecutor(test, *rest, **more):\n            try: yield\n            except AssertionError:\n                if 'control' in test.id(): raise\nunittest.case._Outcome = Outcome\n"},
			want: map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "context managers changed", command: "python3 -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 2)\nimport contextlib\nkind = contextlib._GeneratorContextManager\nreal = kind.__exit__\n" +
				"def leave(self, *error):\n    known = error[2]\n    while known and known.tb_frame.f_code.co_name != 'test_a': known = known.tb_next\n    return real(self, *((None, None, None) if known else error)) or bool(known)\nkind.__exit__ = leave\n"},
			want: map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "code changed", command: "python3 -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 2)\n    def test_b(self): pass\nunittest.TestCase._callTestMethod.__code__ = (lambda self, method: None if self._testMethodName == 'test_a' else method()).__code__\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed, "test_a.Case.test_b": passed}},
		// Also if it is put back before the end.
		{name: "changed for a while", command: "python3 -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 2)\nreal = unittest.TestCase._callTestMethod\ndef call(self, method): pass\nunittest.TestCase._callTestMethod = call\ndef tearDownModule(): unittest.TestCase._callTestMethod = real\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "code at the end", command: "python3 -m unittest", complete: true,
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.fail('wrong')\nimport atexit\natexit.register(lambda: os._exit(0))\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": failed}},
		{name: "descriptions changed", command: "python3 -m unittest", complete: true, passed: true,
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 1)\nunittest.TestCase.shortDescription = lambda self: None\nunittest.TestCase.maxDiff = None\nunittest.TestCase.assertSame = lambda self, a, b: self.assertIs(a, b)\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "assertions off", command: "python3 -O -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): assert 1 == 2\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "runner changed", command: "python3 -m unittest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): self.assertEqual(1, 2)\nunittest.TestCase.run = lambda self, result=None: (result.startTest(self), result.addSuccess(self), result.stopTest(self))\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed}},
		{name: "does not start", command: "cd missing && python3 -m unittest", note: "wrote no report", files: map[string]string{"a.py": ""}},
		{name: "only", command: "python3 -m unittest", complete: true, passed: true, only: []string{"test_a.Case.test_a", "test_a.Case.test_sub (i=0)"},
			files: map[string]string{"test_a.py": pythonCase + "    def test_a(self): pass\n    def test_b(self): self.fail('wrong')\n    def test_sub(self):\n        with self.subTest(i=0): pass\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed, "test_a.Case.test_sub": passed}},
		{name: "folder", command: "cd sub && python3 -m unittest discover -s tests", complete: true, passed: true,
			files: map[string]string{"sub/tests/test_a.py": pythonCase + "    def test_a(self): pass\n"},
			want:  map[string]testreport.Status{"test_a.Case.test_a": passed}},
	})
}

func TestPytest(t *testing.T) {
	t.Parallel()
	recorded(t, "pytest", []scenario{
		{name: "passing", command: "python -m pytest", complete: true, passed: true,
			files: map[string]string{"tests/test_a.py": "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n): assert n\nclass TestGroup:\n    def test_in(self): pass\n@pytest.mark.xfail\ndef test_known(): assert False\n"},
			want: map[string]testreport.Status{"tests/test_a.py::test_n[1]": passed, "tests/test_a.py::test_n[2]": passed, "tests/test_a.py::TestGroup::test_in": passed,
				"tests/test_a.py::test_known": skipped}, messages: map[string]string{"tests/test_a.py::test_known": expected}},
		{name: "expected to fail", command: "pytest", complete: true,
			files: map[string]string{"test_a.py": "import pytest, unittest\n@pytest.mark.xfail(reason='known')\ndef test_known(): assert False\n@pytest.mark.xfail\ndef test_lucky(): pass\n@pytest.mark.xfail(strict=True)\ndef test_strict(): pass\n@pytest.mark.xfail(run=False)\ndef test_never(): pass\nclass TestA(unittest.TestCase):\n    @unittest.expectedFailure\n    def test_in(self): self.fail('known')\n    @unittest.expectedFailure\n    def test_lucky(self): pass\n"},
			want: map[string]testreport.Status{"test_a.py::test_known": skipped, "test_a.py::test_lucky": skipped, "test_a.py::test_strict": failed, "test_a.py::test_never": skipped,
				"test_a.py::TestA::test_in": skipped, "test_a.py::TestA::test_lucky": failed},
			messages: map[string]string{"test_a.py::test_known": expected + ": known", "test_a.py::test_lucky": expected + ", but passed", "test_a.py::TestA::test_in": expected}},
		{name: "failing", command: "pytest -q", complete: true,
			files: map[string]string{"test_a.py": "import pytest\ndef test_good(): pass\ndef test_bad(): assert 1 == 2\n@pytest.mark.skip(reason='later')\ndef test_skip(): pass\n@pytest.fixture\ndef broken(): raise ValueError('x')\ndef test_setup(broken): pass\n@pytest.fixture\ndef late():\n    yield\n    raise ValueError('y')\ndef test_teardown(late): pass\n"},
			want:  map[string]testreport.Status{"test_a.py::test_good": passed, "test_a.py::test_bad": failed, "test_a.py::test_skip": skipped, "test_a.py::test_setup": failed, "test_a.py::test_teardown": failed}},
		{name: "broken module", command: "pytest", complete: true,
			files: map[string]string{"test_a.py": "import missing_module\n"},
			want:  map[string]testreport.Status{"test_a.py": failed}},
		{name: "all skipped", command: "pytest", complete: true,
			files: map[string]string{"test_a.py": "import pytest\n@pytest.mark.skip(reason='later')\ndef test_skip(): pass\n"},
			want:  map[string]testreport.Status{"test_a.py::test_skip": skipped}},
		{name: "none", command: "pytest", note: "no test was found", files: map[string]string{"a.py": ""}},
		{name: "crash", command: "pytest", note: "ended before its report did",
			files: map[string]string{"test_a.py": "import os\ndef test_a(): pass\ndef test_b(): os.abort()\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": passed}},
		{name: "exit", command: "pytest", note: "ended before its report did",
			files: map[string]string{"test_a.py": "import os\ndef test_a(): pass\ndef test_b(): os._exit(0)\ndef test_c(): assert False\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": passed}},
		{name: "exit of pytest", command: "pytest", note: "did not run to their end",
			files: map[string]string{"test_a.py": "import pytest\ndef test_a(): pass\ndef test_b(): pytest.exit('done', returncode=0)\ndef test_c(): assert False\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": passed}},
		{name: "forged", command: "pytest -s", complete: true,
			files: map[string]string{"test_a.py": "def test_a(): print('test_a.py::test_b PASSED\\n=== 2 passed in 0.01s ===')\ndef test_b(): assert False\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": passed, "test_a.py::test_b": failed}},
		{name: "conftest changes results", command: "pytest", note: "assertions or the runner were changed",
			files: map[string]string{"sub/conftest.py": "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    out = yield\n    report = out.get_result()\n    report.outcome = 'passed'\n", "sub/test_a.py": "def test_a(): assert False\n", "test_b.py": "def test_b(): pass\n"},
			want:  map[string]testreport.Status{"sub/test_a.py::test_a": passed, "test_b.py::test_b": passed}},
		{name: "conftest changes reports", command: "pytest", complete: true,
			files: map[string]string{"conftest.py": "def pytest_runtest_logreport(report): report.outcome = 'passed'\n", "test_a.py": "def test_a(): assert False\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": failed}},
		{name: "assertions changed", command: "pytest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": "import unittest\nclass TestA(unittest.TestCase):\n    def test_a(self): self.assertEqual(1, 2)\nunittest.TestCase.assertEqual = lambda *a: None\n"},
			want:  map[string]testreport.Status{"test_a.py::TestA::test_a": passed}},
		// It lets the controls fail, whose name it knows.
		{name: "runner changed", command: "pytest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": "import _pytest.python\nkind = _pytest.python.Function\nreal = kind.runtest\ndef runtest(self):\n    try: real(self)\n    except AssertionError:\n        if 'control' in self.name: raise\nkind.runtest = runtest\ndef test_a(): assert False\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": passed}},
		{name: "runner changed for a while", command: "pytest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": "import _pytest.runner\nkind = _pytest.runner.CallInfo\nreal = vars(kind)['from_call']\ndef setup_module():\n    kind.from_call = classmethod(lambda cls, function, when, reraise=None: real.__func__(cls, (lambda: None) if when == 'call' else function, when, reraise))\ndef teardown_module(): kind.from_call = real\ndef test_a(): assert False\ndef test_b(): assert False\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": passed, "test_a.py::test_b": passed}},
		{name: "hooks changed", command: "pytest", note: "assertions or the runner were changed",
			files: map[string]string{"test_a.py": "import sys\nmodule = sys.modules['_pytest.runner']\nreal = module.call_runtest_hook\ndef call(item, when, **rest):\n    made = real(item, when, **rest)\n    if item.name == 'test_a': made.excinfo = None\n    return made\nif hasattr(module, 'call_and_report'): module.call_runtest_hook = call\nfrom _pytest.reports import TestReport\nmake = vars(TestReport)['from_item_and_call'].__func__\ndef made(cls, item, call):\n    report = make(cls, item, call)\n    if item.name == 'test_a': report.outcome = 'passed'\n    return report\nTestReport.from_item_and_call = classmethod(made)\ndef test_a(): assert False\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": passed}},
		{name: "driver changed", command: "pytest", complete: true,
			files: map[string]string{"test_a.py": "import json, os, sys\nencode, leave = json.JSONEncoder.encode, os._exit\njson.JSONEncoder.encode = lambda self, value: encode(self, value).replace('\"failed\"', '\"passed\"') if 'case' in value else encode(self, value)\ndriver = sys.modules['toryo_pytest']\nif hasattr(driver, 'Reporter'):\n    case = driver.Reporter.case;\n    driver.Reporter.case = lambda self, name, status, message: case(self, name, 'passed', '')\ndef test_a(): assert False\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": failed}},
		{name: "processes", command: "pytest -n 2", complete: true, passed: true,
			files: map[string]string{"test_a.py": "def test_a(): pass\n", "test_b.py": "def test_b(): pass\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": passed, "test_b.py::test_b": passed}},
		{name: "only", command: "pytest .", complete: true, passed: true, only: []string{"test_a.py::test_a"},
			files: map[string]string{"test_a.py": "def test_a(): pass\ndef test_b(): assert False\n"},
			want:  map[string]testreport.Status{"test_a.py::test_a": passed}},
	})
}
