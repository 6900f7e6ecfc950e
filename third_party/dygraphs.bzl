"""dygraphs, the charting library of report.html, from Debian's libjs-dygraphs: always the same bytes."""

_FILES = {
    "dygraph.min.js": ("/usr/share/javascript/dygraphs/dygraph.min.js", "065bb9a7158dadc02b1c204b962dcc45279304dffbe80d5cb898ff33afac5c40"),
    "dygraph.min.css": ("/usr/share/javascript/dygraphs/dygraph.min.css", "26c4ef2356454f40e108e4d9649bf92139671cb49ef214ec1879fd8ffad848c9"),
    "copyright": ("/usr/share/doc/libjs-dygraphs/copyright", "5ad7ed8e3f6fa2366b34d4e1b1fc4caa68e3c6fd20314ebbf36978dc978dc956"),
}

def _dygraphs_repository_impl(repository_ctx):
    for name, (path, sha256) in _FILES.items():
        if not repository_ctx.path(path).exists:
            fail("%s is missing: ci/setup.sh installs libjs-dygraphs" % path)

        # A copy whose digest is checked; nothing is fetched.
        repository_ctx.download(url = "file://" + path, output = name, sha256 = sha256)
    repository_ctx.file("BUILD", "exports_files(%s)\n" % repr(_FILES.keys()))

dygraphs_repository = repository_rule(implementation = _dygraphs_repository_impl)
