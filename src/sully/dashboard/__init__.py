"""The web dashboard: an ASGI application with the page, its data as JSON, and a stream of changes.

Owns: sessions of viewers (sessions.py), one client per viewer with its watches (viewers.py,
live.py), the rows of the fleet (rows.py), HTTP (app.py, http.py), and the page (static/).
Never: reads or writes with other rights than the viewer's; decides what a command decides, which
its caller passes as `Routes`; runs anything of the page's text as code.
Start at: app.py, then viewers.py.
"""
