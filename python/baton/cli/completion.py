# SPDX-License-Identifier: Apache-2.0
"""`baton completion SHELL`: a completion script, made from the argument parser itself."""

from __future__ import annotations

import argparse

from .arguments import Parser, add_verb


def add_parser(verbs, verb, text):
    parser = add_verb(
        verbs, verb, text,
        "  baton completion bash > ~/.local/share/bash-completion/completions/baton\n"
        "  baton completion zsh > ~/.zfunc/_baton      # with fpath+=~/.zfunc before compinit\n"
        "  baton completion fish > ~/.config/fish/completions/baton.fish",
    )  # fmt: skip
    parser.add_argument("shell", choices=sorted(_SHELLS), help="the shell that will read it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from . import build_parser

    print(_SHELLS[args.shell](_verbs(build_parser())), end="")
    return 0


def _verbs(parser: Parser) -> dict[str, tuple[str, list[argparse.Action]]]:
    """Verb to (help, its actions)."""
    verbs = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    texts = {choice.dest: choice.help for choice in verbs._choices_actions}
    return {name: (texts[name], sub._actions) for name, sub in verbs.choices.items()}


def _takes_file(action) -> bool:
    return getattr(action, "complete", None) == "file"


def _choices(action) -> list[str]:
    return [str(choice) for choice in action.choices] if action.choices else []


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _bash(verbs) -> str:
    out = ["# bash completion of baton", "_baton() {"]
    out += [
        "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=${COMP_WORDS[1]}",
        "  COMPREPLY=()",
    ]
    out += ['  if [ "$COMP_CWORD" -eq 1 ]; then']
    out += [f'    COMPREPLY=($(compgen -W "{" ".join(verbs)} --help --version" -- "$cur"))', "    return", "  fi"]
    out += ['  case "$verb $prev" in']
    for verb, (_, actions) in verbs.items():
        for action in actions:
            if action.option_strings and _choices(action):
                patterns = "|".join(f'"{verb} {option}"' for option in action.option_strings)
                out.append(f'  {patterns}) COMPREPLY=($(compgen -W "{" ".join(_choices(action))}" -- "$cur")); return;;')
    out += ["  esac", '  case "$verb" in']
    for verb, (_, actions) in verbs.items():
        words = [option for action in actions for option in action.option_strings]
        for action in actions:
            if not action.option_strings:
                words += _choices(action)
        out.append(f'  {verb}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$cur"));;')
    out += ["  esac", '  case "$cur" in -*) ;; *=*) COMPREPLY+=($(compgen -f -- "${cur#*=}"));;']
    out += ['  *) COMPREPLY+=($(compgen -f -- "$cur"));; esac', "}", "complete -o filenames -F _baton baton", ""]
    return "\n".join(out)


def _zsh_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def _zsh(verbs) -> str:
    out = ["#compdef baton", "_baton() {", "  local -a verbs", "  verbs=("]
    out += [f"    {_quote(f'{verb}:{_zsh_text(text)}')}" for verb, (text, _) in verbs.items()]
    out += ["  )", "  if (( CURRENT == 2 )); then _describe verb verbs; return; fi", "  local verb=$words[2]"]
    out += ["  shift words; (( CURRENT-- ))", "  case $verb in"]
    for verb, (_, actions) in verbs.items():
        out.append(f"  {verb}) _arguments \\")
        for action in actions:
            choices = _choices(action)
            argument = f"({' '.join(choices)})" if choices else "_files" if _takes_file(action) else " "
            if not action.option_strings:
                out.append(f"    {_quote(f':{action.dest}:{argument}')} \\")
            for option in action.option_strings:
                takes = "" if action.nargs == 0 else f":{action.dest}:{argument}"
                star = "*" if isinstance(action, argparse._AppendAction) else ""
                out.append(f"    {_quote(f'{star}{option}[{_zsh_text(action.help or chr(32))}]{takes}')} \\")
        out.append("    ;;")
    out += ["  esac", "}", '_baton "$@"', ""]
    return "\n".join(out)


def _fish(verbs) -> str:
    out = ["# fish completion of baton", "complete -c baton -f"]
    for verb, (text, actions) in verbs.items():
        out.append(f"complete -c baton -n __fish_use_subcommand -a {verb} -d {_fish_quote(text)}")
        seen = f"-n '__fish_seen_subcommand_from {verb}'"
        for action in actions:
            choices = f" -xa {_fish_quote(' '.join(_choices(action)))}" if _choices(action) else ""
            if not action.option_strings:
                out.append(f"complete -c baton {seen}{choices or ' -F'}")
                continue
            names = "".join(f" -l {option[2:]}" if option.startswith("--") else f" -s {option[1:]}" for option in action.option_strings)
            value = "" if action.nargs == 0 else choices or (" -rF" if _takes_file(action) else " -x")
            out.append(f"complete -c baton {seen}{names}{value} -d {_fish_quote(action.help or '')}")
    return "\n".join([*out, ""])


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
