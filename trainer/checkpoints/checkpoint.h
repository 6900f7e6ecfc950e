// Checkpoints in files: one per rank and checkpoint, DIR/step-00000050.rank0.ckpt, each with the
// whole state of its rank (the model is the same on all; sampler and generators differ, and a file
// that does not need others is the simplest to trust).
//
// A file is written under a temporary name, synced, then renamed, so a crash at any point leaves
// either the whole file or none. A checkpoint is whole when the files of all ranks are there,
// undamaged and written by the same `writer`; if one attempt saved a step on half of the ranks
// only, files of another attempt do not complete it.
//
// The format is our own rather than LibTorch's archive because that is a pickle (loading runs a
// program) with CRC-32 at best, and says nothing about which entry was damaged:
//   "trainwreck-checkpoint 1 <16 hex digits: digest of the header> <bytes of the header>\n"
//   header: JSON {"steps_done", "rank", "world_size", "writer", "data_bytes",
//                 "entries": [{"name", "dtype", "shape", "offset", "bytes", "digest"}, ...]}
//   the entries' raw bytes, one after the other, in the machine's byte order (little-endian)
// Every byte is covered: by the magic, the header's digest, or the digest of its entry.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/parts.h"

namespace trainwreck {

struct CheckpointOptions {
  std::string dir;  // is made when it is not there
  int keep = 2;     // number of newest whole checkpoints to keep, at least 1
  int rank = 0;
  int world_size = 1;
  std::string writer;  // this attempt ("train.0")
  // Makes this rank's state of the states that another number of ranks saved, by rank. Null:
  // checkpoints of another number of ranks are not taken.
  std::function<StateDict(const std::vector<StateDict>& saved)> reshard = nullptr;
  // Told by List() of each checkpoint on disk that is newer than the newest whole one: which rank's
  // file is wrong, and how.
  std::function<void(int steps_done, int rank, const std::string& why)> on_damaged = nullptr;
};

// Where a rank's file of a checkpoint lies.
std::string CheckpointPath(const std::string& dir, int steps_done, int rank);

class FileCheckpointStore : public CheckpointStore {
 public:
  explicit FileCheckpointStore(CheckpointOptions options);

  // Writes this rank's file, then removes its own files that are older than the `keep` newest whole
  // checkpoints. Throws std::runtime_error (disk full, ...); what was there before is untouched
  // then.
  void Save(int steps_done, const StateDict& state) override;
  // Reads and checks every file in full.
  std::vector<int> List() const override;
  // This rank's state. Throws std::runtime_error that names file and entry when anything is wrong
  // with it.
  StateDict Load(int steps_done) const override;

 private:
  struct Damage {
    int rank;  // whose file it is
    std::string why;
  };

  struct FileOnDisk {
    int steps_done;
    int rank;
  };

  // Empty: it is whole.
  std::optional<Damage> DamageOf(int steps_done, bool check_data) const;
  // How many ranks should have written this checkpoint.
  int WritersOf(int steps_done) const;
  // This rank's files; with `reshard`, those of all ranks.
  std::vector<FileOnDisk> FilesOnDisk() const;
  // Steps of the checkpoints that may be there, ascending.
  std::vector<int> StepsOnDisk() const;
  void RemoveOld() const;

  CheckpointOptions options_;
};

}  // namespace trainwreck
