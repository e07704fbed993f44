"""Makes and checks what others install: packages, locks, SBOM, documentation.

Owns: the targets `dist`, `audit`, `lock` and `release` of the Makefile.
Never: uploads anything.
Start at: __main__.py.
"""
