"""Every code that the schema language can answer with, and what it means.

What it does: names the findings in a schema text (`S…`) and the changes that the migration
planner can plan (`OG-…`).
Guarantees: a published code never changes its meaning; no code is used that is not listed here.
Deliberately absent: wording of single findings, which needs the names at hand.
"""

from __future__ import annotations

FINDINGS: dict[str, str] = {
    # Text that cannot be read.
    "S001": "something else was expected here",
    "S002": "a character that has no place in a schema",
    "S003": "a string that is not closed",
    "S004": "a block comment that is not closed",
    "S005": "an escape that strings do not know",
    "S006": "a body that is not closed",
    "S007": "a number that is too large",
    # Names.
    "S101": "a type name that does not start with a capital letter",
    "S102": "a property name that starts with a capital letter",
    "S103": "two types of the same name",
    "S104": "two properties of the same name in one type",
    "S105": "a property name that the storage needs for itself",
    "S106": "two edge names that differ only in case",
    "S107": "an interface that does not exist",
    "S108": "an edge end that is not a node type",
    # Types.
    "S201": "a property type that does not exist",
    "S202": "a vector length that is out of range",
    "S203": "a list of something that lists cannot hold",
    "S204": "an enum that lists a value twice",
    "S205": "an enum without values",
    "S206": "a property whose type differs from its interface's",
    "S207": "two interfaces that disagree about a property",
    # Constraints.
    "S301": "a constraint on a property that does not exist",
    "S302": "a constraint in a place where it cannot stand",
    "S303": "a constraint that does not fit the property's type",
    "S304": "more than one key",
    "S305": "a key property that may be null",
    "S306": "a constraint with the wrong arguments",
    "S307": "bounds in the wrong order",
    "S308": "a pattern that is not a regular expression",
    "S309": "a constraint that is written twice on one property",
    # Annotations.
    "S401": "an annotation that is written twice",
    "S402": "an annotation with missing or wrong arguments",
    "S403": "an annotation in a place where it cannot stand",
    "S404": "an embedding of a property that is missing or not a String",
    "S405": "a keyword argument that the annotation does not know",
    "S406": "a default that does not fit the property",
    "S407": "a default on a type that cannot have one",
    # Identity.
    "S501": "a rename from a name that the accepted schema does not hold",
    "S502": "a rename that would move identity to another kind or owner",
    "S503": "an accepted name that two declarations claim",
    # Warnings.
    "S901": "an index that has no effect",
    "S902": "a rename hint that has no effect",
    "S903": "an unknown annotation that looks like a known one",
    "S904": "an edge property that has the name of an end in queries",
}

CHANGES: dict[str, str] = {
    # Additive: nothing that worked before stops working.
    "OG-AD-101": "add a type",
    "OG-AD-102": "add an optional property",
    "OG-AD-103": "add an index",
    "OG-AD-104": "widen an enum",
    "OG-AD-105": "widen a numeric type without loss",
    "OG-AD-106": "make a required property optional",
    "OG-AD-107": "change descriptions and other annotations",
    "OG-AD-108": "change the default of a property",
    "OG-AD-109": "change which interfaces a node type implements",
    "OG-AD-110": "change an interface",
    "OG-AD-111": "add a constraint that no existing row can break",
    # Rename: data and identity stay, the old name stops working.
    "OG-BC-101": "rename a type",
    "OG-BC-102": "rename a property",
    "OG-BC-103": "rename an interface",
    # Constraint deletion: less is promised than before.
    "OG-CD-101": "remove a uniqueness constraint",
    "OG-CD-102": "remove an index",
    "OG-CD-103": "remove or loosen a range",
    "OG-CD-104": "remove a check",
    "OG-CD-105": "loosen a cardinality",
    "OG-CD-106": "remove an interface",
    "OG-CD-107": "remove a key",
    # Destructive: data becomes unreachable.
    "OG-DS-101": "drop a whole graph (reserved)",
    "OG-DS-102": "drop a node type",
    "OG-DS-103": "drop an edge type",
    "OG-DS-104": "drop a property",
    "OG-DS-105": "drop a vector property",
    # Edges and topology.
    "OG-ED-101": "tighten a cardinality",
    "OG-ED-102": "change the ends of an edge",
    # Maybe-fail: depends on the data that is there.
    "OG-MF-101": "add a uniqueness constraint",
    "OG-MF-102": "add or tighten a range",
    "OG-MF-103": "add a required property without a default",
    "OG-MF-104": "make an optional property required",
    "OG-MF-105": "add or change a check",
    "OG-MF-106": "change a property's type",
    "OG-MF-107": "add or change a key",
    "OG-MF-108": "add a required property and fill it with its default",
    # Vectors and embeddings.
    "OG-VE-101": "change how a vector is embedded",
    "OG-VE-102": "change the length of a vector",
}
