"""The commands: one module for each command or group, with a Typer application named `app`.

`cli.main.COMMANDS` lists them; a module is imported when its command is called.
"""
