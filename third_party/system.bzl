"""Libraries of the system (Debian packages, see ci/setup.sh): one cc_library each."""

# name: (linkopts, why it is here is said in ARCHITECTURE.md)
_LIBRARIES = {
    "yaml_cpp": ["-lyaml-cpp"],
    "cli11": [],
    "nlohmann_json": [],
    "fmt": ["-lfmt"],
    "gtest": ["-lgmock", "-lgtest", "-lpthread"],
    "gtest_main": ["-lgmock_main", "-lgmock", "-lgtest", "-lpthread"],
    "benchmark": ["-lbenchmark", "-lpthread"],
    "benchmark_main": ["-lbenchmark_main", "-lbenchmark", "-lpthread"],
    "rapidcheck": ["-lrapidcheck"],
    "valijson": [],
    "gloo": [],
    "re2": ["-lre2"],
    "sqlite3": ["-lsqlite3"],
    "simdjson": ["-lsimdjson"],
    "boost_math": [],
}

def _system_library_repository_impl(repository_ctx):
    rules = ['package(default_visibility = ["//visibility:public"])']
    for name, linkopts in _LIBRARIES.items():
        rules.append('cc_library(name = "%s", linkopts = %s)' % (name, linkopts))
    repository_ctx.file("BUILD", "\n\n".join(rules) + "\n")

system_library_repository = repository_rule(implementation = _system_library_repository_impl)
