"""The live page in a browser: `aver ui`."""
