"""SQLite: an append-only table of events, and tables derived from it in the same transaction.

The only importer of sqlite3. One `writer.Writer`, any number of `reader.Reader`s. `docs/design/store.md` is its
contract.
"""
