"""`omnigraph logout`; see `login`."""

from __future__ import annotations

from omnigraph.cli.commands.login import logout_app

app = logout_app
