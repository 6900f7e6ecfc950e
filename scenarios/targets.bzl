"""The scenarios, for defs.bzl. Written by `trainwreck list --format bazel`; do not edit."""

SCENARIOS = [
    struct(
        name = "hang/silent-rank-death",
        file = "hang/silent-rank-death.yaml",
        tags = [],
        size = "small",
        cores = 2,
    ),
    struct(
        name = "hang/uneven-shards",
        file = "hang/uneven-shards.yaml",
        tags = [],
        size = "small",
        cores = 2,
    ),
    struct(
        name = "nan/corrupt-sample",
        file = "nan/corrupt-sample.yaml",
        tags = ["smoke"],
        size = "small",
        cores = 1,
    ),
    struct(
        name = "nan/lr-too-high",
        file = "nan/lr-too-high.yaml",
        tags = ["smoke"],
        size = "medium",
        cores = 1,
    ),
    struct(
        name = "nan/no-warmup",
        file = "nan/no-warmup.yaml",
        tags = [],
        size = "medium",
        cores = 1,
    ),
    struct(
        name = "not-learning/frozen-params",
        file = "not-learning/frozen-params.yaml",
        tags = [],
        size = "small",
        cores = 1,
    ),
    struct(
        name = "resume/optimizer-state-dropped",
        file = "resume/optimizer-state-dropped.yaml",
        tags = [],
        size = "medium",
        cores = 1,
    ),
]
