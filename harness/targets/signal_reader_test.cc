// Signals of programs, from text and event files that grow, tear, begin anew and lie.
#include "harness/targets/signal_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/targets/event_file.h"

namespace trainwreck {
namespace signal_reader_test {

namespace fs = std::filesystem;
using std::string_literals::operator""s;
using testing::ElementsAre;

class SignalReaderTest : public testing::Test {
 protected:
  SignalReaderTest() {
    const char* tmp = std::getenv("TEST_TMPDIR");
    std::string name = std::string(tmp != nullptr ? tmp : "/tmp") + "/signals-XXXXXX";
    folder_ = mkdtemp(name.data());
    sink_.step = [this](const StepValues& values) {
      std::string text = std::to_string(values.step);
      for (const auto& [signal, value] : values.values) {
        char number[32];
        std::snprintf(number, sizeof number, "%g", value);
        text += " " + signal + "=" + number;
      }
      steps_.push_back(text);
    };
    sink_.unreadable = [this](const std::string&, const std::string& text, const std::string& why) {
      complaints_.push_back(text + ": " + why);
    };
  }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  void Append(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::app | std::ios::binary) << text;
  }

  std::string folder_;
  SignalSink sink_;
  std::vector<std::string> steps_, complaints_;
};

SourceSpec Pattern(const std::string& pattern, int first_step = 0) {
  SourceSpec source;
  source.pattern = pattern;
  source.first_step = first_step;
  source.names = {{"loss", "loss"}};
  if (pattern.find("<step>") != std::string::npos) source.step = "step";
  return source;
}

TEST_F(SignalReaderTest, ReadsLinesThatGrow) {
  const SourceSpec source = Pattern(R"(Iteration (?P<step>\d+), loss = (?P<loss>\S+))", 1);
  const auto reader = MakeLineReader(source, path("out"), false, sink_);
  reader->Poll(false);  // not there yet
  Append("out", "hello\nIteration 1, loss = 2.5\nIteration 2, lo");
  reader->Poll(false);
  EXPECT_TRUE(steps_.empty());  // more may come of step 0
  Append("out", "ss = nan\rIteration 3, loss = -inf");
  reader->Poll(false);
  EXPECT_THAT(steps_, ElementsAre("0 loss=2.5"));
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=2.5", "1 loss=nan", "2 loss=-inf"));
  EXPECT_TRUE(complaints_.empty());
}

// As a file on NFS or FUSE may be seen while another machine appends to it.
TEST_F(SignalReaderTest, WaitsForBytesThatAreSeenAsZeros) {
  const SourceSpec source = Pattern(R"(Iteration (?P<step>\d+), loss = (?P<loss>\S+))", 1);
  const auto reader = MakeLineReader(source, path("out"), false, sink_);
  const std::string seen = "Iteration 1, loss = 2.5\nIteration 2, lo";
  Append("out", seen + std::string(9, '\0'));
  reader->Poll(false);
  reader->Poll(false);
  std::fstream(path("out"), std::ios::in | std::ios::out | std::ios::binary) << seen + "ss = 1.5\n";
  reader->Poll(false);
  Append("out", "Iteration 3, \0oss = 7\nIteration 4, loss = 1\n"s);
  reader->Poll(true);  // and for those that stay no more than 2 s
  EXPECT_THAT(steps_, ElementsAre("0 loss=2.5", "1 loss=1.5", "3 loss=1"));
}

TEST_F(SignalReaderTest, CountsStepsThatAreNotSaid) {
  const SourceSpec source = Pattern("loss (?P<loss>.*)");
  const auto reader = MakeLineReader(source, path("out"), false, sink_);
  Append("out", "loss 3\nloss 2\nloss oops\nloss 1\n");
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=3", "1 loss=2", "2 loss=1"));
  EXPECT_THAT(complaints_, ElementsAre("oops: signal 'loss' is no number"));
}

TEST_F(SignalReaderTest, SkipsWhatAnEarlierAttemptWroteUnlessTheFileBeginsAnew) {
  const SourceSpec source = Pattern(R"((?P<step>\d+) (?P<loss>.*))");
  Append("out", "0 5\n1 4\n");
  const auto reader = MakeLineReader(source, path("out"), /*skip_existing=*/true, sink_);
  Append("out", "1 3\n");
  reader->Poll(false);
  std::ofstream(path("out")) << "0 9\n1 8\n2 7\n3 6\n";  // longer than before, too
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("1 loss=3", "0 loss=9", "1 loss=8", "2 loss=7", "3 loss=6"));
}

TEST_F(SignalReaderTest, ReadsCsv) {
  SourceSpec source;
  source.kind = SourceKind::kCsv;
  source.step = "epoch";
  source.names = {{"loss", "train, loss"}, {"accuracy", "acc"}};
  const auto reader = MakeLineReader(source, path("log.csv"), false, sink_);
  Append("log.csv", "epoch,\"train, loss\",acc\r\n0,0.5,\r\n1,\"0.25\",0.9\r\n");
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=0.5", "1 accuracy=0.9 loss=0.25"));
  // After a resume rows are appended below the old header.
  steps_.clear();
  const auto again = MakeLineReader(source, path("log.csv"), /*skip_existing=*/true, sink_);
  Append("log.csv", "2,0.125,0.95\n");
  again->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("2 accuracy=0.95 loss=0.125"));
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SignalReaderTest, MissesAColumnAloud) {
  SourceSpec source;
  source.kind = SourceKind::kCsv;
  source.names = {{"loss", "los"}};
  const auto reader = MakeLineReader(source, path("log.csv"), false, sink_);
  Append("log.csv", "loss\n1\n");
  reader->Poll(true);
  EXPECT_THAT(complaints_, ElementsAre("los: no such column"));
}

TEST_F(SignalReaderTest, ReadsJsonLinesAsPythonWritesThem) {
  SourceSpec source;
  source.kind = SourceKind::kJsonLines;
  source.step = "step";
  source.names = {{"loss", "train.loss"}};
  const auto reader = MakeLineReader(source, path("log.jsonl"), false, sink_);
  Append("log.jsonl", R"({"step": 0, "train": {"loss": NaN}, "note": "a NaN \" NaN"}
{"step": 1, "train.loss": -Infinity}
{"note": "no step"}
{"step": 2, "train": {"loss": null}}
{"step": 3, "train": {"loss": 0.5}}
)");
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=nan", "1 loss=-inf", "3 loss=0.5"));
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SignalReaderTest, TakesNoLineThatIsTooLong) {
  const SourceSpec source = Pattern("loss (?P<loss>[0-9]+)");
  const auto reader = MakeLineReader(source, path("out"), false, sink_);
  Append("out", "loss 1 " + std::string(2 << 20, '.') + "\nloss 2\n");
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=2"));
}

TEST_F(SignalReaderTest, ReadsAFileOfManyPiecesToItsEnd) {
  const SourceSpec source = Pattern("loss (?P<loss>[0-9]+)");
  const auto reader = MakeLineReader(source, path("out"), false, sink_);
  for (int i = 0; i < 12; ++i) Append("out", "loss 1\n" + std::string(1 << 19, '.') + "\n");
  reader->Poll(false);
  EXPECT_LT(steps_.size(), 11U) << "one look takes only so much";
  reader->Poll(true);
  EXPECT_EQ(steps_.size(), 12U);
}

TEST_F(SignalReaderTest, ComplainsOfStepsThatCannotBe) {
  const SourceSpec source = Pattern(R"((?P<step>\S+) (?P<loss>\S+))", 1);
  const auto reader = MakeLineReader(source, path("out"), false, sink_);
  Append("out", "0 3\n1 2\nx 1\n1e12 1\n");
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=2"));
  EXPECT_THAT(complaints_, ElementsAre("0: no step, counted from 1", "x: no step, counted from 1",
                                       "1e12: no step, counted from 1"));
}

TEST_F(SignalReaderTest, TakesOnlyGroupsThatMatched) {
  SourceSpec source = Pattern(R"(^(?P<step>\d+)(?: loss (?P<loss>\S+))?(?: lr (?P<lr>\S+))?$)");
  source.names["lr"] = "lr";
  const auto reader = MakeLineReader(source, path("out"), false, sink_);
  Append("out", "0 loss 3\n0 lr 0.5\n1 lr 0.25\n");
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=3 lr=0.5", "1 lr=0.25"));
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SignalReaderTest, FollowsAFileThatBecomesAnother) {
  const SourceSpec source = Pattern(R"((?P<step>\d+) (?P<loss>.*))");
  const auto reader = MakeLineReader(source, path("out"), false, sink_);
  Append("out", "0 5\n1 4\n");
  reader->Poll(false);
  Append("new", "0 5\n1 4\n2 3\n");  // begins with the same bytes, and is another file
  fs::rename(path("new"), path("out"));
  reader->Poll(false);
  std::ofstream(path("out")) << "7 7\n";  // shorter
  reader->Poll(true);
  EXPECT_THAT(steps_,
              ElementsAre("0 loss=5", "1 loss=4", "0 loss=5", "1 loss=4", "2 loss=3", "7 loss=7"));
}

TEST_F(SignalReaderTest, DoesNotWaitForAFifo) {
  ASSERT_EQ(mkfifo(path("out").c_str(), 0600), 0);
  const int writer = open(path("out").c_str(), O_RDWR);
  ASSERT_EQ(write(writer, "loss 1\n", 7), 7);
  const SourceSpec source = Pattern("loss (?P<loss>[0-9]+)");
  MakeLineReader(source, path("out"), false, sink_)->Poll(true);
  EXPECT_TRUE(steps_.empty());
  close(writer);
}

TEST_F(SignalReaderTest, ReadsCsvAsProgramsWriteIt) {
  SourceSpec source;
  source.kind = SourceKind::kCsv;
  source.step = "step";
  source.names = {{"loss", "the \"loss\""}};
  const auto reader = MakeLineReader(source, path("log.csv"), false, sink_);
  const std::string header = "step,\"the \"\"loss\"\"\"\n";
  Append("log.csv", "\xEF\xBB\xBF" + header + "0,3\n" + header + "1,2\n2\n");
  reader->Poll(false);
  EXPECT_TRUE(complaints_.empty());
  // Begun anew, with its columns in another order.
  std::ofstream(path("log.csv")) << "\"the \"\"loss\"\"\",step\n9,0\n";
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=3", "1 loss=2", "0 loss=9"));
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SignalReaderTest, ComplainsOfLinesThatAreNoJson) {
  SourceSpec source;
  source.kind = SourceKind::kJsonLines;
  source.names = {{"loss", "loss"}};
  const auto reader = MakeLineReader(source, path("log.jsonl"), false, sink_);
  Append("log.jsonl", "{\"loss\": 1}\noops\n[2]\n{\"loss\": \"3\"}\n{\"loss\": \"x\"}\n");
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=1", "1 loss=3"));
  EXPECT_THAT(complaints_, ElementsAre("oops: no JSON object", "[2]: no JSON object",
                                       "x: signal 'loss' is no number"));
}

TEST(NumberFromText, TakesWhatProgramsWrite) {
  EXPECT_EQ(NumberFromText(" 1.5e-3, "), 1.5e-3);
  EXPECT_EQ(NumberFromText("true"), 1.0);
  EXPECT_EQ(NumberFromText("false"), 0.0);
  EXPECT_TRUE(std::isnan(*NumberFromText("nan")));
  for (const char* text : {"", "0x10", "1.5s", "1,5", "--", "None"}) {
    EXPECT_EQ(NumberFromText(text), std::nullopt) << text;
  }
}

TEST(Crc32c, IsTheCastagnoliSum) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);            // the check value of CRC-32C
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
}

SourceSpec Tags() {
  SourceSpec source;
  source.kind = SourceKind::kTensorBoard;
  source.names = {{"loss", "Loss/train"}, {"accuracy", "Acc"}};
  return source;
}

TEST_F(SignalReaderTest, ReadsEventFilesByteByByte) {
  fs::create_directory(path("tb"));
  const std::string bytes = EncodeEventFile({{"Loss/train", 0, 5, 2.5},
                                             {"Acc", 0, 5, 0.5},
                                             {"other", 1, 5, 7},
                                             {"Loss/train", 1, 6, NAN}});
  const SourceSpec source = Tags();
  const auto reader = MakeEventFileReader(source, path("tb"), false, sink_);
  for (const char byte : bytes) {
    Append("tb/events.out.tfevents.1", std::string(1, byte));
    reader->Poll(false);
  }
  EXPECT_THAT(steps_, ElementsAre("0 accuracy=0.5 loss=2.5"));
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 accuracy=0.5 loss=2.5", "1 loss=nan"));
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SignalReaderTest, ReadsASecondEventFileAfterAResume) {
  fs::create_directory(path("tb"));
  Append("tb/events.out.tfevents.1",
         EncodeEventFile({{"Loss/train", 0, 1, 1}, {"Loss/train", 1, 1, 2}}));
  const SourceSpec source = Tags();
  const auto reader = MakeEventFileReader(source, path("tb"), /*skip_existing=*/true, sink_);
  Append("tb/events.out.tfevents.2",
         EncodeEventFile({{"Loss/train", 1, 9, 4}, {"Loss/train", 2, 9, 5}}));
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("1 loss=4", "2 loss=5"));
}

TEST_F(SignalReaderTest, TrustsNoDamagedRecord) {
  fs::create_directory(path("tb"));
  const std::string good = EncodeEventFile({{"Loss/train", 0, 1, 1}, {"Loss/train", 1, 1, 2}});
  const SourceSpec source = Tags();
  for (std::size_t i = 0; i < good.size(); ++i) {  // wherever a bit flips
    steps_.clear();
    complaints_.clear();
    std::string bad = good;
    bad[i] ^= 0x20;
    std::ofstream(path("tb/events.out.tfevents.1"), std::ios::binary) << bad;
    MakeEventFileReader(source, path("tb"), false, sink_)->Poll(true);
    EXPECT_EQ(complaints_.size(), 1U) << i;
    for (const std::string& step : steps_) {
      EXPECT_TRUE(step == "0 loss=1" || step == "1 loss=2") << i << ": " << step;
    }
  }
  std::ofstream(path("tb/events.out.tfevents.1"), std::ios::binary)
      << good.substr(0, good.size() - 3);
  steps_.clear();
  complaints_.clear();
  MakeEventFileReader(source, path("tb"), false, sink_)->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=1"));  // the torn end is what a SIGKILL leaves
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SignalReaderTest, ReadsAnEventFileThatIsBegunAnewAndALongOne) {
  fs::create_directory(path("tb"));
  const std::string file = path("tb/events.out.tfevents.1");
  const SourceSpec source = Tags();
  const auto reader = MakeEventFileReader(source, path("tb"), false, sink_);
  const std::string first = EncodeEventFile({{"Loss/train", 0, 1, 1}, {"Loss/train", 1, 1, 2}});
  std::ofstream(file, std::ios::binary) << first.substr(0, first.size() - 3);
  reader->Poll(false);
  std::vector<ScalarEvent> many(150000, {"Loss/train", 5, 2, 3});  // 6 MB
  many.push_back({"Loss/train", 6, 2, 4});
  std::ofstream(file, std::ios::binary) << EncodeEventFile(many);
  reader->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=1", "5 loss=3", "6 loss=4"));
  EXPECT_TRUE(complaints_.empty());
}

TEST_F(SignalReaderTest, ComplainsOfEventsWhoseStepsCannotBe) {
  fs::create_directory(path("tb"));
  Append("tb/events.out.tfevents.1",
         EncodeEventFile({{"Loss/train", 0, 1, 1},
                          {"Loss/train", 1, 1, 2},
                          {"Loss/train", std::int64_t{1} << 40, 1, 3}}));
  SourceSpec source = Tags();
  source.first_step = 1;
  MakeEventFileReader(source, path("tb"), false, sink_)->Poll(true);
  EXPECT_THAT(steps_, ElementsAre("0 loss=2"));
  EXPECT_THAT(complaints_,
              ElementsAre("0: no step, counted from 1", "1099511627776: no step, counted from 1"));
}

// A length that nobody writes is damage: waiting for so many bytes would be for ever.
TEST(RecordSplitter, RefusesAnAbsurdLength) {
  const std::uint64_t length = std::uint64_t{1} << 40;
  std::string header(reinterpret_cast<const char*>(&length), sizeof length);
  const std::uint32_t crc = Crc32c(header);
  const std::uint32_t masked = ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
  header.append(reinterpret_cast<const char*>(&masked), sizeof masked);
  RecordSplitter records;
  records.Append(header);
  EXPECT_EQ(records.Next(), std::nullopt);
  EXPECT_NE(records.error(), "");
}

// A field of a protocol buffer that holds bytes.
std::string Field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) +
         bytes;
}

template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

TEST(ParseEvent, ReadsScalarsThatAreTensors) {
  const std::string tensors[] = {
      "\x08\x01" + Field(4, Bytes(0.5F)),  // float, raw
      "\x08\x02" + Field(4, Bytes(0.5)),   // double, raw
      Field(5, Bytes(0.5F)),               // floats, packed
      "\x2d" + Bytes(0.5F),                // one float
      Field(6, Bytes(0.5)),                // doubles, packed
      "\x31" + Bytes(0.5),                 // one double
  };
  for (const std::string& tensor : tensors) {
    std::vector<ScalarEvent> scalars;
    const std::string value = Field(1, "loss") + Field(8, tensor);
    EXPECT_TRUE(ParseEvent("\x09" + Bytes(3.0) + "\x10\x07" + Field(5, Field(1, value)), scalars));
    ASSERT_EQ(scalars.size(), 1U);
    EXPECT_EQ(scalars[0].tag, "loss");
    EXPECT_EQ(scalars[0].value, 0.5);
    EXPECT_EQ(scalars[0].step, 7);
    EXPECT_EQ(scalars[0].wall_time, 3.0);
  }
  std::vector<ScalarEvent> scalars;  // a vector is no scalar
  const std::string vector = "\x08\x01" + Field(4, Bytes(0.5));
  ParseEvent(Field(5, Field(1, Field(1, "x") + Field(8, vector))), scalars);
  EXPECT_TRUE(scalars.empty());
}

TEST(ParseEvent, SurvivesGarbage) {
  std::uint32_t state = 1;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (int i = 0; i < round % 40; ++i) {
      state = state * 1664525 + 1013904223;
      bytes += static_cast<char>(state >> 24);
    }
    std::vector<ScalarEvent> scalars;
    ParseEvent(bytes, scalars);
    EXPECT_LE(scalars.size(), bytes.size());
  }
}

}  // namespace signal_reader_test
}  // namespace trainwreck
