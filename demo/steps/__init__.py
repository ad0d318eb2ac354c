"""The steps of the tour, one file per subject."""
