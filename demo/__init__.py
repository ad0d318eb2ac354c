"""The guided tour; `make demo` runs it."""
