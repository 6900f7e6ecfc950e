// The reader of traces has a fast way for plain records. What it makes of a line must be what the
// JSON library makes of it, whatever the line is.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "harness/protocol/trace_reader.h"

namespace trainwreck {
namespace trace_differential_test {

class TraceDifferentialTest : public testing::Test {
 protected:
  TraceDifferentialTest() : folder_(testing::TempDir() + "/diff.XXXXXX") {
    mkdtemp(folder_.data());
  }

  // A first record makes the names known: the fast way is for those.
  TraceReader Read(const std::string& line) const {
    const std::string first =
        R"({"t":"step","step":0,"time":1,"loss":1,"a":1,"b{c.d}":1,"":1,"é":1})";
    std::ofstream(folder_ + "/rank0.jsonl", std::ios::trunc | std::ios::binary) << first << "\n"
                                                                                << line << "\n";
    TraceReader reader(folder_, 1, 10);
    reader.Poll(/*last=*/true);
    return reader;
  }

  // What stands in `line` at step 1, by the library; false where the line says anything else.
  static bool Expected(const std::string& line, std::map<std::string, double>& signals) {
    const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!record.is_object() || record.value("t", Json()) != "step") return false;
    const Json step = record.value("step", Json());
    if (!step.is_number() || static_cast<int>(step.get<double>()) != 1) return false;
    for (const auto& [key, value] : record.items()) {
      if (key == "t" || key == "step") continue;
      const std::optional<double> number = DecodeNumber(value);
      if (!number) return false;
      signals[key] = *number;
    }
    return true;
  }

  void ExpectSame(const std::string& line) const {
    std::map<std::string, double> expected;
    const TraceReader reader = Read(line);
    const bool is_good = Expected(line, expected);
    EXPECT_TRUE(reader.problems().empty() || !is_good) << line;
    std::map<std::string, double> read;
    for (const auto& [key, series] : reader.trace().series) {
      if (series.Has(1)) read[key.first] = series.values[1];
    }
    if (!is_good) {
      const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!record.is_object() || record.value("t", Json()) != "step" ||
          record.value("step", Json()) != 1) {
        EXPECT_TRUE(read.empty()) << line;
      }
      if (!record.is_object()) {
        const bool is_blank = line.find_first_not_of(" \t\r\n") == line.npos;
        EXPECT_EQ(reader.problems().empty(), is_blank) << line;
      }
      return;
    }
    ASSERT_EQ(read.size(), expected.size()) << line;
    for (const auto& [key, value] : expected) {
      ASSERT_EQ(read.count(key), 1u) << key << " in " << line;
      EXPECT_EQ(std::memcmp(&read[key], &value, sizeof value), 0) << key << " in " << line;
    }
  }

  std::string folder_;
};

TEST_F(TraceDifferentialTest, OddLines) {
  for (const char* members : {R"("loss":-0)",
                              R"("loss":-0.0)",
                              R"("loss":0e5)",
                              R"("loss":1e999)",
                              R"("loss":1e-999)",
                              R"("loss":5e-324)",
                              R"("loss":2.2250738585072011e-308)",
                              R"("loss":9007199254740993)",
                              R"("loss":18446744073709551615)",
                              R"("loss":18446744073709551616)",
                              R"("loss":123456789012345678901234567890.5)",
                              R"("loss":01)",
                              R"("loss":1.)",
                              R"("loss":.5)",
                              R"("loss":+1)",
                              R"("loss":1e)",
                              R"("loss":-)",
                              R"("loss":1x)",
                              R"("loss":1 2)",
                              R"("loss":true)",
                              R"("loss":truex)",
                              R"("loss":null)",
                              R"("loss":"nan")",
                              R"("loss":"-inf")",
                              R"("loss":"nan"x)",
                              R"("loss":"n\u0061n")",
                              R"("loss":1,"loss":2)",
                              R"("loss":"x","loss":2)",
                              R"("l\u006fss":2)",
                              R"("loss":1,)",
                              R"("loss":1 "a":2)",
                              R"("loss" 1)",
                              R"("loss":)",
                              R"(loss:1)",
                              R"("step":1,"loss":2)",
                              R"("step":2,"loss":2)",
                              R"("t":"event","loss":2)",
                              R"("":3)",
                              R"("b{c.d}":7)",
                              R"("loss":[1])",
                              R"("x":{"y":1})",
                              R"("é":2)",
                              "\"\xc3\":2",
                              "\"lo\tss\":2",
                              "\"loss\":\x01",
                              R"("loss":1}{"a":2)",
                              R"("new":2)",
                              R"("loss":1},)",
                              R"("time":2,"time":3)"}) {
    const std::string line = R"({"t":"step","step":1,)" + std::string(members) + "}";
    ExpectSame(line);
    ExpectSame(" " + line + " \r");
    ExpectSame(line + "x");
    ExpectSame(line + " 1");
    ExpectSame(line.substr(0, line.size() - 1));
    ExpectSame("\xef\xbb\xbf" + line);
  }
}

TEST_F(TraceDifferentialTest, Collectives) {
  for (const char* members :
       {R"("step":3,"call":7,"op":"all_reduce","shape":"[8]","dtype":"float32","unknown":1)",
        R"("step":3,"call":true,"op":"a\"b","shape":"\u0041")", R"("step":"3","op":5,"op":"x")",
        R"("op":"x","op":null)", R"("call":1e12,"shape":[8])", R"("op":"é","dtype":7,"call":-1)",
        R"("call":NaN,"op":"x")"}) {
    const std::string line = R"({"t":"collective",)" + std::string(members) + "}";
    std::string plain = line;
    if (plain.find("NaN") != plain.npos) plain.replace(plain.find("NaN"), 3, "\"nan\"");
    const Json record = Json::parse(plain);
    const auto number = [&](const char* key) {
      const Json value = record.value(key, Json(0));
      const bool is_int = value.is_number() && value.get<double>() < 1e8;
      return is_int ? value.get<int>() : 0;
    };
    const auto text = [&](const char* key) {
      const Json value = record.value(key, Json());
      return value.is_string() ? value.get<std::string>() : "";
    };
    const TraceReader reader = Read(line);
    ASSERT_TRUE(reader.problems().empty()) << line;
    ASSERT_EQ(reader.trace().collectives.at(0).size(), 1u) << line;
    const Collective expected{number("step"), number("call"), text("op"), text("shape"),
                              text("dtype")};
    EXPECT_EQ(reader.trace().collectives.at(0)[0], expected) << line;
  }
}

TEST_F(TraceDifferentialTest, DoublesAreExact) {
  std::mt19937_64 random(1);
  std::string text;
  std::vector<double> values;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    char number[64];
    std::snprintf(number, sizeof number,
                  i % 3 == 0   ? "%.17g"
                  : i % 3 == 1 ? "%.9g"
                               : "%.25e",
                  value);
    values.push_back(std::strtod(number, nullptr));
    text += R"({"t":"step","step":)" + std::to_string(values.size() - 1) + R"(,"loss":)" + number +
            "}\n";
  }
  std::ofstream(folder_ + "/rank0.jsonl") << text;
  TraceReader reader(folder_, 1, 0);
  reader.Poll(true);
  ASSERT_TRUE(reader.problems().empty());
  const std::vector<double>& read = reader.trace().Find("loss", 0)->values;
  ASSERT_EQ(read.size(), values.size());
  EXPECT_EQ(std::memcmp(read.data(), values.data(), values.size() * sizeof(double)), 0);
}

TEST_F(TraceDifferentialTest, DamagedLines) {
  const std::vector<std::string> lines = {
      R"({"t":"step","step":1,"time":0.25,"loss":-1.5e-3,"a":true,"b{c.d}":"inf"})",
      R"({"t": "step", "step": 1, "a": 17, "loss": "nan", "\u0061": 2, "note": "x\"y"})"};
  const std::string pieces = "\"\\{}[]:,0-.eE1 tnN\x01\xc3";
  std::mt19937 random(2);
  for (int i = 0; i < 1000; ++i) {
    std::string line = lines[random() % lines.size()];
    for (int times = 1 + static_cast<int>(random() % 2); times > 0; --times) {
      const std::size_t at = random() % line.size();
      const char piece = pieces[random() % pieces.size()];
      switch (random() % 3) {
        case 0:
          line[at] = piece;
          break;
        case 1:
          line.insert(at, 1, piece);
          break;
        default:
          line.erase(at, 1);
      }
    }
    ExpectSame(line);
    if (HasFailure()) return;
  }
}

// Signals may come in any order, and not all at each step.
TEST_F(TraceDifferentialTest, ShapesMayChange) {
  std::mt19937 random(3);
  const std::vector<std::string> names = {"loss", "a", "grad_norm", "eval_loss", "time", "z{m.0}"};
  std::map<std::string, std::map<int, double>> expected;
  std::string text;
  for (int step = 0; step < 3000; ++step) {
    std::vector<std::string> chosen = names;
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(1 + random() % names.size());
    text += R"({"t":"step","step":)" + std::to_string(step);
    for (const std::string& name : chosen) {
      const double value = static_cast<double>(random() % 1000) / 8;
      expected[name][step] = value;
      text += ",\"" + name + "\":" + std::to_string(value);
    }
    text += "}\n";
  }
  std::ofstream(folder_ + "/rank0.jsonl") << text;
  TraceReader reader(folder_, 1, 0);
  reader.Poll(true);
  EXPECT_TRUE(reader.problems().empty());
  ASSERT_EQ(reader.trace().series.size(), names.size());
  for (const std::string& name : names) {
    const Series& series = *reader.trace().Find(name, 0);
    for (int step = 0; step < 3000; ++step) {
      const auto found = expected[name].find(step);
      ASSERT_EQ(series.Has(step), found != expected[name].end()) << name << " " << step;
      if (series.Has(step)) {
        ASSERT_EQ(series.values[step], found->second);
      }
    }
  }
  EXPECT_EQ(reader.trace().last_step(0), 2999);
}

}  // namespace trace_differential_test
}  // namespace trainwreck
