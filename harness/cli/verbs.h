// The verbs of the command line, one file each: options in, exit status out. A verb prints its
// results on stdout and what is wrong on stderr; UsageError and ConfigurationError (session.h) are
// for main to print.
#pragma once

#include "harness/session/options.h"

namespace trainwreck {

int RunVerb(const Options& options);
int ListVerb(const Options& options);
int ValidateVerb(const Options& options);
int ExplainVerb(const Options& options);
int DoctorVerb(const Options& options);
int CheckVerb(const Options& options);
int JudgeVerb(const Options& options);
int ReportVerb(const Options& options);
int RerunVerb(const Options& options);
int HistoryVerb(const Options& options);
int BaselineVerb(const Options& options);
int CompareVerb(const Options& options);
int NewVerb(const Options& options);
int SchemaVerb(const Options& options);
int BisectVerb(const Options& options);
int DoseVerb(const Options& options);
int MatrixVerb(const Options& options);
int CheckupVerb(const Options& options);
int LrRangeVerb(const Options& options);

}  // namespace trainwreck
