"""Finds the Triton kernels of a source tree, without what the tree demands of its environment.

Used by tools/triton-kernels. Modules are executed statement by statement, and a statement that fails is skipped:
a GPU or other packages that are missing do not keep kernels from being found.
"""

import __future__
import ast
import dataclasses
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import pathlib
import sys
import textwrap

from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.jit import JITFunction

# Loading


class TolerantLoader(importlib.machinery.SourceFileLoader):
    """Executes a module statement by statement; those that fail are skipped."""

    def exec_module(self, module):
        tree = ast.parse(pathlib.Path(self.path).read_text())
        flags = 0
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                for name in statement.names:
                    flags |= getattr(__future__, name.name).compiler_flag
                continue
            for part in self._parts(statement):
                self._execute(part, flags, module)

    @staticmethod
    def _parts(statement):
        if not isinstance(statement, ast.ImportFrom) or len(statement.names) == 1:
            return [statement]
        return [ast.copy_location(ast.ImportFrom(statement.module, [name], statement.level), statement)
                for name in statement.names]

    def _execute(self, statement, flags, module):
        def attempt():
            code = compile(ast.Module([statement], []), self.path, "exec", flags, dont_inherit=True)
            exec(code, module.__dict__)

        try:
            attempt()
        except (Exception, SystemExit):
            # A kernel whose autotuner cannot be built here is one all the same.
            plain = [d for d in getattr(statement, "decorator_list", []) if "triton.jit" in ast.unparse(d)]
            if plain and len(plain) < len(statement.decorator_list):
                statement.decorator_list = plain
                try:
                    attempt()
                except Exception:
                    pass


class TreeFinder(importlib.abc.MetaPathFinder):
    """Imports packages of the trees; those above a tree are empty packages."""

    def __init__(self):
        self._roots = {}  # name of a top-level package -> its folder
        self._trees = []

    def add(self, tree):
        """The name of the package that a folder is, the folder having been made known."""
        names, root = [tree.name], tree
        while (root.parent / "__init__.py").exists():
            root = root.parent
            names.insert(0, root.name)
        self._roots[names[0]] = root
        self._trees.append(tree)
        return ".".join(names)

    def find_spec(self, name, path=None, target=None):
        first, *rest = name.split(".")
        if first not in self._roots:
            return None
        place = self._roots[first].joinpath(*rest)
        package = place / "__init__.py"
        if place.is_dir():
            if not package.exists() or any(place in tree.parents for tree in self._trees):
                spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = [str(place)]
                return spec
            return importlib.util.spec_from_file_location(name, package, loader=TolerantLoader(name, str(package)),
                                                          submodule_search_locations=[str(place)])
        file = place.with_suffix(".py")
        if not file.exists():
            return None
        return importlib.util.spec_from_file_location(name, file, loader=TolerantLoader(name, str(file)))


# Kernels


@dataclasses.dataclass
class KernelSource:
    """A kernel, the decorators around it, and the constants that launches in the source give it."""

    name: str  # module and function
    jit: JITFunction
    configs: list
    heuristics: dict
    launched_with: dict


def unwrapped(value):
    """The function under autotuners and heuristics, with their configurations and rules; none for other values."""
    configs, heuristics = [], {}
    while isinstance(value, (Autotuner, Heuristics)):
        if isinstance(value, Autotuner):
            configs = configs or value.configs
        else:
            heuristics = {**value.values, **heuristics}
        value = value.fn
    return (value, configs, heuristics) if isinstance(value, JITFunction) else None


def function_tree(jit):
    """The syntax tree of a function."""
    return ast.parse(textwrap.dedent(inspect.getsource(jit.fn))).body[0]


def _launch_constants(scope, call):
    """Keyword arguments of a launch that are literals, or names of literals in the function of the launch."""
    literals = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            literals.update({t.id: node.value.value for t in node.targets if isinstance(t, ast.Name)})
    found = {}
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Constant):
            found[keyword.arg] = keyword.value.value
        elif isinstance(keyword.value, ast.Name) and keyword.value.id in literals:
            found[keyword.arg] = literals[keyword.value.id]
    return found


class Sources:
    """Names that are launched (`kernel[grid](…)`) and names that kernels call, over all files."""

    def __init__(self):
        self.launches = {}
        self.called = set()

    def add(self, file):
        for node in ast.parse(file.read_text()).body:
            for function in ast.walk(node):
                if not isinstance(function, ast.FunctionDef):
                    continue
                is_jit = any("triton.jit" in ast.unparse(d) for d in function.decorator_list)
                for call in ast.walk(function):
                    if not isinstance(call, ast.Call):
                        continue
                    if is_jit and isinstance(call.func, ast.Name):
                        self.called.add(call.func.id)
                    if isinstance(call.func, ast.Subscript) and isinstance(call.func.value, (ast.Name, ast.Attribute)):
                        target = call.func.value
                        name = target.id if isinstance(target, ast.Name) else target.attr
                        self.launches.setdefault(name, {}).update(_launch_constants(function, call))

    def is_device_function(self, name, tree):
        returns = any(isinstance(n, ast.Return) and n.value is not None for n in ast.walk(tree))
        return returns or (name in self.called and name not in self.launches)


def find_kernels(trees, skip=()):
    """Kernels of the trees, and the number of functions that only kernels call."""
    finder, sources = TreeFinder(), Sources()
    sys.meta_path.insert(0, finder)
    modules = []
    for tree in trees:
        package = finder.add(tree)
        for file in sorted(tree.rglob("*.py")):
            if any(part in str(file) for part in skip):
                continue
            sources.add(file)
            if "triton.jit" in file.read_text():
                relative = file.relative_to(tree).with_suffix("")
                parts = [p for p in relative.parts if p != "__init__"]
                modules.append(".".join([package, *parts]))
    kernels, device_functions = [], 0
    for name in modules:
        module = importlib.import_module(name)
        for label, value in list(vars(module).items()):
            wrapped = unwrapped(value)
            if wrapped is None or wrapped[0].fn.__module__ != name or wrapped[0].fn.__name__ != label:
                continue
            jit, configs, heuristics = wrapped
            if sources.is_device_function(label, function_tree(jit)):
                device_functions += 1
                continue
            kernels.append(KernelSource(f"{name}.{label}", jit, configs, heuristics, sources.launches.get(label, {})))
    return kernels, device_functions
