"""The options that a program declares by `argparse` or `jsonargparse`, for a person who declares
the program (`trainwreck init`). Those of other libraries are in parsers.py.

Nothing here needs torch: many programs read their options before they import it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import math
import os
import re
import sys
import types
from typing import Any, Callable, NamedTuple, Union, get_args, get_origin


class Parse(NamedTuple):
    """One reading of the words that this process was started with, or of the last ones of them."""

    words: list[str]
    names: set[str]  # of all options that the parser knows
    refuses: bool  # options that it does not know
    given: set[str]  # names of the options that are among the words
    options: list[dict[str, Any]]  # the others
    long: dict[str, list[str]]  # names of those given by a short one: {"-b": ["--batch"]}


_parses: list[Parse] = []
# What a parser has left of its words, each a copy that no other list has, and the names it knows.
_rests: list[tuple[list[str], set[str]]] = []
_strict: list[Any] = []  # the parsers whose parse_args is at work
_reading: list[Any] = []  # the same of parse_known_args, which parse_args calls


def watch() -> None:
    """Notes what each parser declares, once it has read its words."""
    kind: Any = argparse.ArgumentParser
    parse_args, parse_known_args = kind.parse_args, kind.parse_known_args

    @functools.wraps(parse_args)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        _strict.append(self)
        try:
            return parse_args(self, *args, **kwargs)
        finally:
            _strict.pop()

    @functools.wraps(parse_known_args)
    def call_known(self: Any, *args: Any, **kwargs: Any) -> Any:
        words = _words(args, kwargs)
        _reading.append(self)
        try:
            result = parse_known_args(self, *args, **kwargs)
        finally:
            _reading.pop()
        _note(self, words, result[0])
        if not _reading and not any(one is self for one in _strict):
            guard(_keep_rest, self, result[1])
        return result

    def call_subclass(subclass: Any, /, **kwargs: Any) -> None:
        super(kind, subclass).__init_subclass__(**kwargs)
        is_own = "parse_args" in vars(subclass)
        if is_own and subclass.__module__.partition(".")[0] == "jsonargparse":
            _watch_whole(subclass)

    kind.parse_args, kind.parse_known_args = call, call_known
    kind.__init_subclass__ = classmethod(call_subclass)
    from trainwreck import parsers

    parsers.watch()


def _watch_whole(kind: Any) -> None:
    """The same of a class that reads all words by itself. It calls itself for a subcommand."""
    parse_args = kind.parse_args

    @functools.wraps(parse_args)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        words = _words(args, kwargs)
        _strict.append(self)
        _reading.append(self)
        try:
            result = parse_args(self, *args, **kwargs)
            _note(self, words, result)
            return result
        finally:
            _reading.pop()
            _strict.pop()

    kind.parse_args = call


def _words(args: Any, kwargs: Any) -> list[str] | None:
    """What a parser is to read; None: other words than those of this process."""
    given = args[0] if args else kwargs.get("args")
    words = list(given) if isinstance(given, (list, tuple)) else None
    if given is None:
        words = sys.argv[1:]
    if not words and not _reading and (given is not None or not is_program(last_words(1))):
        words = None  # a program that asks for the defaults; below another parser: none is left
    return words


def guard(see: Callable[..., None], *args: Any, **kwargs: Any) -> None:
    """Calls what notes something; the program goes on without us."""
    with contextlib.suppress(Exception):
        see(*args, **kwargs)


def _keep_rest(parser: Any, rest: Any) -> None:
    """Lets another parser be known that reads what this one has left."""
    rest[:] = ["".join(list(word)) for word in rest]
    _rests.append((list(rest), set(parser._option_string_actions)))


def note(parse: Parse) -> None:
    """A parser that reads what another one has left does not refuse the options of that one."""
    names = set(parse.names)
    for rest, known in _rests:
        if parse.words and all(any(word is one for one in rest) for word in parse.words):
            names |= known
    _parses.append(parse._replace(names=names))


def _note(parser: Any, words: list[str] | None, values: Any) -> None:
    if words is not None:
        guard(_see, parser, words, values)


def _see(parser: Any, words: list[str], values: Any) -> None:
    if words == last_words(len(words)):
        note(_parse(parser, words, values))


def last_words(count: int) -> list[str]:
    """The last words of this process, as it was started."""
    with open("/proc/self/cmdline", "rb") as file:
        words = [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    return words[max(0, len(words) - count) :]


def is_program(words: list[str]) -> bool:
    """Whether the word is the program itself: its file, or its module."""
    folder, file = os.path.split(sys.argv[0])
    file = os.path.basename(folder) if file == "__main__.py" else file
    names = {file, file.removesuffix(".py")}
    return any(os.path.basename(one) in names or one.rpartition(".")[2] in names for one in words)


def _parse(parser: Any, words: list[str], values: Any) -> Parse:
    known: dict[str, Any] = parser._option_string_actions
    given, options, long = set(), [], {}
    takes_rest = any(one.nargs in (argparse.REMAINDER, argparse.PARSER) for one in parser._actions)
    is_cut = takes_rest or "--" in words  # not each word that looks like an option is one
    for action in parser._actions:
        names = [name for name in action.option_strings if name.startswith("--")]
        if _is_given(action, words, known) or _is_set(action, values):
            given.update(names)
            if action.nargs is None and not is_cut:
                long.update(long_names(names, action.option_strings, words))
        elif names and not isinstance(action, (argparse._HelpAction, argparse._VersionAction)):
            option = {"names": names, "takes_value": action.nargs != 0}
            number = None if is_cut else _number(parser, action, values)
            options.append(option if number is None else {**option, "default": number})
    has_parts = any(one.nargs == argparse.PARSER for one in parser._actions)
    refuses = not has_parts and any(one is parser for one in _strict)
    return Parse(words, set(known), refuses, given, options, long)


def long_names(names: list[str], every: list[str], words: list[str]) -> dict[str, list[str]]:
    """The long `names` by each short one of `every` name that is a word of its own."""
    return {one: names for one in every if names and one not in names and one in words}


def _is_given(action: Any, words: list[str], known: dict[str, Any]) -> bool:
    """Whether one of the words may be this option: as it is, or shortened."""
    for word in words:
        name = word.partition("=")[0]
        if name in known:
            if known[name] is action:
                return True
            continue
        for option in action.option_strings:
            if name.startswith("--"):
                if len(name) > 2 and option.startswith(name):
                    return True
            elif re.match("-[A-Za-z]", name) and len(option) == 2 and option[1] in name:
                return True  # -b32, or -vb 32
            elif len(name) > 1 and option.startswith(name):
                return True
    return False


def _value(action: Any, values: Any) -> Any:
    """`values` of jsonargparse are nested: model.width is the width of the model."""
    get = getattr(values, "get", None)
    return get(action.dest) if callable(get) else getattr(values, action.dest, None)


def _kinds(action: Any) -> set[Any]:
    """The types that a word of this option may get; empty: not known."""
    if type(action) is argparse._StoreAction:
        return {action.type}
    return kinds_of(getattr(action, "_typehint", None))  # of jsonargparse


def kinds_of(hint: Any) -> set[Any]:
    """The types of a union, or the one."""
    if get_origin(hint) in (Union, getattr(types, "UnionType", Union)):
        return set(get_args(hint))
    return {hint}


def _default(action: Any) -> Any:
    """A default that is a string is read as a word is."""
    is_word = isinstance(action.default, str) and action.type in (int, float)
    return action.type(action.default) if is_word else action.default


def _is_set(action: Any, values: Any) -> bool:
    """Whether it has another value than its default: by another option, by a file of words."""
    value, default = _value(action, values), _default(action)
    if type(value) in (int, float) and type(default) in (int, float):
        return bool(value != default)
    return (value is None) != (default is None) and default != argparse.SUPPRESS


def _number(parser: Any, action: Any, values: Any) -> str | None:
    """The number that changes nothing if the option is given with it, as it is written."""
    value, kinds = _value(action, values), _kinds(action)
    if action.nargs is not None or action.choices is not None:
        return None
    if getattr(action, "deprecated", False):
        return None
    if any(action in group._group_actions for group in parser._mutually_exclusive_groups):
        return None
    if not kinds <= {int, float, bool, type(None)} or type(value) not in kinds & {int, float}:
        return None  # a word would have another type than the default
    return repr(value) if math.isfinite(value) else None


def told() -> dict[str, Any]:
    """The options that the program was not given: `names`, `takes_value`, and the `default` where
    the program trains alike if it is given. `command` has the words that were read, and the one
    before, `long` the long names of the options that it was given by short ones."""
    options: dict[str, dict[str, Any]] = {}
    given: set[str] = set().union(*(parse.given for parse in _parses))
    for parse in _parses:
        for option in parse.options:
            first = options.setdefault(option["names"][0], dict(option))
            if first.get("default") != option.get("default"):
                first.pop("default", None)
    strict = [parse.names for parse in _parses if parse.refuses]

    def is_word(option: dict[str, Any]) -> bool:  # key=value is no option of a parser
        return not option["names"][0].startswith("-")

    kept = [
        option
        for option in options.values()
        if given.isdisjoint(option["names"])
        and (is_word(option) or all(names.issuperset(option["names"]) for names in strict))
    ]
    long: dict[str, list[str]] = {}
    rivals: set[str] = set()  # one word, two options: nothing tells which one was meant
    for short, names in (one for parse in _parses for one in parse.long.items()):
        if long.setdefault(short, names) != names:
            rivals.add(short)
    long = {
        short: names
        for short, names in long.items()
        if short not in rivals and all(known.issuperset(names) for known in strict)
    }
    count = max((len(parse.words) + 1 for parse in _parses), default=0)
    return {"command": last_words(count), "options": kept, "long": long}
