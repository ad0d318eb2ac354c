"""The command line: arguments in, text out.

One module of `commands` per command or group of commands, each with a Typer application named
`app`, listed in `main.COMMANDS`; beside `commands` is what they share. A command calls one
operation and prints what it returns.

`--help` imports no command module and no database code; an error of ours is printed as its message
and what to do next, never as a traceback, and decides the exit code.
"""
