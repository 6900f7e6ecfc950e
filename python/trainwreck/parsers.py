"""The options that a program declares by click, typer, absl, tyro or fire, and the settings that
words `key=value` change (Hydra, OmegaConf), for `trainwreck init`.

Each function that notes something is called with what the library has read already. Nothing here
needs torch.
"""

from __future__ import annotations

import functools
import itertools
import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Callable

from trainwreck import options, surroundings
from trainwreck.imports import after_import
from trainwreck.options import Parse, is_program, kinds_of, last_words

Seen = Callable[..., None]


def watch() -> None:
    """Notes what each of these libraries reads, if the program imports it."""
    for name in ("click.core", "typer._click.core"):  # of newer ones of typer
        after_import(name, lambda core: _after(core.Command, "parse_args", _see_click))
    after_import("absl.flags._flagvalues", lambda of: _after(of.FlagValues, "__call__", _see_absl))
    backends = "tyro._backends"
    after_import(
        f"{backends}._tyro_backend", lambda of: _after(of.TyroBackend, "parse_args", _see_tyro)
    )
    after_import(
        f"{backends}._argparse_backend",
        lambda of: _after(of.ArgparseBackend, "parse_args", _see_tyro),
    )
    after_import("fire.core", _watch_fire)
    after_import(
        "hydra.core.hydra_config",
        lambda of: _after(of.HydraConfig, "set_config", _see_hydra),
    )
    after_import("omegaconf.omegaconf", lambda of: _watch_omegaconf(of.OmegaConf))


def _after(kind: Any, name: str, see: Seen) -> None:
    """Lets a method be seen with its result and its arguments, as they were before the call."""
    method = getattr(kind, name)

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = tuple(list(one) if isinstance(one, list) else one for one in args)
        result = method(self, *args, **kwargs)
        options.guard(see, result, self, *before, **kwargs)
        return result

    setattr(kind, name, call)


def _option(names: list[str], value: Any, kinds: set[Any], takes_value: bool = True) -> Any:
    """An option with its value, where that is a number of its type. No type: it may have any."""
    option: dict[str, Any] = {"names": names, "takes_value": takes_value}
    is_number = takes_value and type(value) in (kinds or {int, float}) & {int, float}
    if is_number and math.isfinite(value):
        option["default"] = repr(value)
    return option


def _long(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith("--")]


# click and typer.


def _kind_of_click(param: Any) -> set[Any]:
    typer = getattr(param, "type_descriptor", None)
    if typer is not None:
        own = typer.parameter_info
        is_own = getattr(own, "parser", None) or getattr(own, "click_type", None)
        return {None if is_own else typer.annotation}
    name = param.type.name
    return {{"integer": int, "float": float}.get(name.removesuffix(" range"))}


def _see_click(_result: Any, command: Any, context: Any, words: list[str]) -> None:
    """One command has read its words. A group leaves those of its command to that."""
    if context.resilient_parsing or not _reaches(words, context.parent is not None):
        return
    is_group = hasattr(command, "resolve_command")
    takes_more = context.allow_interspersed_args and "--" not in words
    known, given, told, long = set(), set(), [], {}
    for param in command.get_params(context):
        names = _long(param.opts)
        known.update(names)
        if param.param_type_name != "option" or not names or getattr(param, "is_eager", False):
            continue
        source = getattr(context.get_parameter_source(param.name), "name", "")
        if source == "COMMANDLINE":
            given.update(names)
            if takes_more and param.nargs == 1 and not (param.is_flag or param.count):
                long.update(options.long_names(names, param.opts, words))
            continue
        is_single = param.nargs == 1 and not param.multiple and param.callback is None
        is_plain = is_single and not getattr(param, "deprecated", False) and source != "PROMPT"
        value = context.params.get(param.name) if is_plain and takes_more else None
        flag = param.is_flag or param.count
        told.append(_option(names, value, _kind_of_click(param), takes_value=not flag))
    refuses = context.parent is None and not is_group and not context.ignore_unknown_options
    options.note(Parse(words, known, refuses, given, told, long))


def _reaches(words: list[str], is_below: bool = False) -> bool:
    """Whether the words are the last ones of this process. No words are only where the last one is
    the program itself, or the command of another parser."""
    return words == last_words(len(words)) if words else is_below or is_program(last_words(1))


# absl.


def _see_absl(rest: list[str], values: Any, argv: Any, known_only: bool = False) -> None:
    words = list(argv[1:])
    if not _reaches(words):
        return
    flags: dict[str, Any] = values._flags()
    of_absl = {
        flag.name
        for module, all_of in values.flags_by_module_dict().items()
        for flag in all_of
        if module.partition(".")[0] == "absl"
    }
    takes_more = len(rest) == 1 or values.is_gnu_getopt()
    is_cut = "--" in words or not takes_more
    types = {"IntegerParser": int, "FloatParser": float}
    given, told = set(), []
    for name in sorted(flags.keys() - of_absl):
        flag = flags[name]
        if name != flag.name:  # its short name
            continue
        if flag.present:
            given.add("--" + name)
            continue
        kinds = {types.get(one.__name__) for one in type(flag.parser).__mro__} - {None} or {None}
        value = None if is_cut else flag.value
        told.append(_option(["--" + name], value, kinds, takes_value=not flag.boolean))
    options.note(Parse(words, {"--" + name for name in flags}, not known_only, given, told, {}))


# tyro.


def _see_tyro(result: Any, _backend: Any, parser_spec: Any, args: list[str], **kwargs: Any) -> None:
    words = last_words(len(args))
    # One of its backends is given the names with other dashes.
    if not _reaches(words) or [_dashed(one) for one in args] != [_dashed(one) for one in words]:
        return
    known: set[str] = set()
    given: set[str] = set()
    told: list[Any] = []
    for part, takes_more in _parts_of_tyro(parser_spec, result[0], words):
        for argument in (one.arg for one in part.get_args_including_children()):
            lowered, field = argument.lowered, argument.field
            names = _long(lowered.name_or_flags)
            known.update(names)
            if argument.is_positional() or not names or argument.is_suppressed():
                continue
            if _is_given([*lowered.name_or_flags, *map(_inverse, names)], words):
                given.update(names)
                continue
            is_plain = lowered.nargs in (None, 1) and not lowered.choices and not lowered.action
            is_open = takes_more and is_plain and field.mutex_group is None and "--" not in words
            value = field.default if is_open else None
            kinds = kinds_of(field.type_stripped)
            kinds = kinds if kinds <= {int, float, type(None)} else {None}
            told.append(_option(names, value, kinds, not lowered.action))
    options.note(Parse(args, known, not kwargs.get("return_unknown_args"), given, told, {}))


def _dashed(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if word.startswith("--") else word


def _inverse(name: str) -> str:
    section, dot, last = name[2:].rpartition(".")
    return f"--{section}{dot}no-{last}"


def _is_given(names: Iterable[str], words: list[str]) -> bool:
    heads = {_dashed(word).partition("=")[0] for word in words if word.startswith("-")}
    letters = {name[1] for name in names if len(name) == 2}
    return any(_dashed(name) in heads for name in names) or any(
        not head.startswith("--") and letters & set(head) for head in heads
    )


def _parts_of_tyro(spec: Any, values: Any, words: list[str]) -> Iterator[tuple[Any, bool]]:
    """The parser and those of the commands that the words name, each with whether it gets what is
    added."""
    below = []
    for prefix, group in spec.subparsers_from_intern_prefix.items():
        name = values.get(f"{prefix} (positional)")
        if name in words and name in group.parser_from_name:
            below.append(group.parser_from_name[name].evaluate())
    yield spec, not spec.subparsers_from_intern_prefix
    for part in below:
        for one, takes_more in _parts_of_tyro(part, values, words):
            yield one, takes_more and len(below) == 1


# fire.


def _watch_fire(core: Any) -> None:
    make = core._MakeParseFn
    fire = core.Fire
    own: list[bool] = []  # whether the calls at work read the words of this process

    @functools.wraps(fire)
    def call(component: Any = None, command: Any = None, *args: Any, **kwargs: Any) -> Any:
        words = sys.argv[1:]
        own.append(command is None and not {"-", "--"} & set(words) and _reaches(words))
        try:
            return fire(component, command, *args, **kwargs)
        finally:
            own.pop()

    @functools.wraps(make)
    def call_make(function: Any, metadata: Any) -> Any:
        parse = make(function, metadata)

        def call_parse(args: Any) -> Any:
            words = list(args)
            result = parse(args)
            if own and own[-1]:
                options.guard(_see_fire, core, function, words, result)
            return result

        return call_parse

    core.Fire, core._MakeParseFn = call, call_make
    sys.modules["fire"].Fire = call  # type: ignore[attr-defined]


def _see_fire(core: Any, function: Any, words: list[str], result: Any) -> None:
    """A function gets its arguments: each with a default is an option."""
    spec = core.inspectutils.GetFullArgSpec(function)
    by_name, other, rest = core._ParseKeywordArgs(list(words), spec)
    # A word without a name would be another argument's, if one before it were named.
    has_unnamed = len(result[2]) < len(other) + len(rest)
    optional = spec.args[len(spec.args) - len(spec.defaults) :]
    defaults = {**dict(zip(optional, spec.defaults)), **spec.kwonlydefaults}
    told = [
        _option(["--" + name], None if has_unnamed else value, set(), type(value) is not bool)
        for name, value in defaults.items()
        if name not in by_name
    ]
    given = {"--" + name for name in by_name}
    known = given | {"--" + name for name in defaults}
    options.note(Parse(sys.argv[1:], known, False, given, told, {}))


# Words `key=value`.


def _see_hydra(_result: Any, _holder: Any, config: Any) -> None:
    words = [str(word) for word in config.hydra.overrides.task]
    own = sys.argv[1:]
    is_sweep = getattr(config.hydra.mode, "name", "RUN") != "RUN"
    if not set(words) <= set(own) or is_sweep or not _reaches(own):
        return
    keys = {word.lstrip("+~").partition("=")[0].partition("@")[0] for word in own}
    settings = (one for one in _settings(config) if one["names"][0].partition(".")[0] != "hydra")
    surroundings.note_own(str(config.hydra.run.dir))
    # Where it writes, whatever the program does: a folder that its time names.
    folder = {"names": ["hydra.run.dir"], "takes_value": True}
    _note_settings(own, keys, itertools.chain(settings, [folder]))


def _settings(config: Any, prefix: str = "") -> Iterator[dict[str, Any]]:
    """Each value of a tree of settings. One that others give is named alone."""
    for key in config:
        if not isinstance(key, str):
            continue
        name = prefix + key
        if _is_open(config, key):
            yield _option([name], None, set())
            continue
        value = config[key]
        if hasattr(value, "_get_node"):
            if hasattr(value, "keys"):
                yield from _settings(value, name + ".")
        else:
            yield _option([name], value, set())


def _is_open(config: Any, key: str) -> bool:
    node = config._get_node(key)
    return bool(node is None or node._is_interpolation() or node._is_missing() or node._is_none())


def _note_settings(words: list[str], given: set[str], settings: Iterable[Any]) -> None:
    options.note(Parse(words, set(), False, given, list(settings), {}))


def _watch_omegaconf(kind: Any) -> None:
    """Words become settings; those count if they are the last ones of a merge."""
    read, merge = kind.from_cli, kind.merge
    from_words: list[tuple[Any, list[str]]] = []

    @functools.wraps(read)
    def call(args_list: Any = None) -> Any:
        words = list(sys.argv[1:] if args_list is None else args_list)
        result = read(args_list)
        from_words.append((result, words))
        return result

    @functools.wraps(merge)
    def call_merge(*configs: Any) -> Any:
        result = merge(*configs)
        for config, words in from_words:
            if configs[-1] is config:
                options.guard(_see_merged, result, words)
        return result

    kind.from_cli, kind.merge = staticmethod(call), staticmethod(call_merge)


def _see_merged(config: Any, words: list[str]) -> None:
    if not _reaches(words):
        return
    keys = {word.partition("=")[0] for word in words}
    _note_settings(words, keys, _settings(config))
