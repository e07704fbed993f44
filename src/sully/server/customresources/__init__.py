"""Serves the kinds of CustomResourceDefinitions while the server runs.

Owns: which kinds of definitions are in the scheme, the conditions of definitions, and the deletion
    of all objects of a definition that is deleted.
Never: decides what a valid definition (api/apiextensions) or object is (machinery/customresources).
Start at: definitions.py.
"""
