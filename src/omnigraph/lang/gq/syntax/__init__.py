"""From text to tree: the grammar of `.gq`, written by hand.

What it does: `lexer` cuts the text, `parser.read` builds the tree; the readers in between each
know one part of the grammar.
Any text is read to its end; mistakes go to a report, never into an exception.
"""
