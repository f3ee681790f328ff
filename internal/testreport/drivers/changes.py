"""Parts of the drivers of Python. They are loaded before any code of the project, and taken
out of sys.modules, so that this code does not find them there.
"""
import builtins
import contextlib
import os
import unittest
import unittest.async_case
from json.encoder import encode_basestring_ascii as encode

# Functions that a class may get from outside, whatever the rest of its names.
HOOKS = (
    "__getattribute__", "__getattr__", "__setattr__", "__init_subclass__",
    "__new__", "__init__", "__call__", "__enter__", "__exit__",
)  # fmt: skip
# Errors, and what a runner asks about them. Tests replace others, such as open.
BASIC = ("isinstance", "issubclass", "getattr", "hasattr", "setattr", "type", "super", "callable", "len", "iter", "next", "str", "list")
BASIC += tuple(name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException))
# What the functions of unittest that decide about tests begin with.
DECIDING = (
    "assert", "fail", "run", "add", "stop", "was", "test", "debug", "do", "default", "from_",
    "_make", "_base", "_format", "_call", "_diff", "_do", "_raise", "_is", "_tear", "_handle", "_add", "_feed", "_should",
)  # fmt: skip

MODULES = unittest, unittest.case, unittest.suite, unittest.result, unittest.runner
KINDS = [unittest.IsolatedAsyncioTestCase, contextlib._GeneratorContextManager, contextlib._GeneratorContextManagerBase]
for _module in MODULES:
    KINDS += [value for value in vars(_module).values() if isinstance(value, type) and value.__module__ == _module.__name__]


def parts(value, depth=3, get=getattr, one_of=isinstance, function=type(lambda: None)):
    """A function and what it is made of; each can be replaced by itself."""
    value = get(value, "__func__", value)
    if depth == 0 or not one_of(value, function):
        return [value]
    found = [value, value.__code__, value.__defaults__, *(value.__kwdefaults__ or {}).values()]
    for cell in value.__closure__ or ():
        try:
            found += parts(cell.cell_contents, depth - 1)
        except ValueError:  # it is empty
            found.append(None)
    return found


def watch(modules, kinds, deciding, size=len, pairs=zip, look=vars):
    """Returns a function that says whether something is not as it was now.

    Of classes it looks at the functions whose names begin with one of those that are given:
    what only describes tests may be changed, and anything may be added. Of modules it looks at
    classes and functions, and at names that would hide those of the language.
    """
    chosen = [(builtins, BASIC)]
    for kind in kinds:
        chosen.append((kind, HOOKS + tuple(n for n, v in vars(kind).items() if n.startswith(deciding) and (callable(v) or hasattr(v, "__func__")))))
    for module in modules:
        chosen.append((module, BASIC + tuple(n for n, v in vars(module).items() if callable(v))))

    def seen():
        found = [kind.__bases__ for kind in kinds]
        for of, names in chosen:
            values = look(of)
            for name in names:
                found += parts(values.get(name))
        return found

    before = seen()

    def changed():
        now = seen()
        if size(now) != size(before):
            return True
        for old, new in pairs(before, now):
            if old is not new:
                return True
        return False

    return changed


def writer(path, write=os.write, encode=encode):
    """Returns a function that writes a line of JSON to a new file. It uses nothing that can be
    replaced in a module of the standard library.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)

    def line(**values):
        texts = [encode(name) + ":" + (encode(value) if value.__class__ is str else "%d" % value) for name, value in values.items()]
        data = ("{" + ",".join(texts) + "}\n").encode("utf-8")
        while data:
            data = data[write(file, data):]

    return line
