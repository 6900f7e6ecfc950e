// Switches of mutants: tools/mutants.py puts this text into a copy of the trainer's sources and
// writes each of its edits with what is here, so that one program holds all of them. The
// environment variable TRAINWRECK_MUTANT says by number which one acts; none does without it. No
// source of the project includes it.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <concepts>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace mutant {

inline int ReadNumber() {
  const char* text = std::getenv("TRAINWRECK_MUTANT");
  return text == nullptr ? 0 : std::atoi(text);
}

// One byte for each mutant, shared by all processes of a run; null where nobody asks.
inline unsigned char* MapReached() {
  const char* path = std::getenv("TRAINWRECK_MUTANTS_REACHED");
  const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  const off_t size = lseek(file, 0, SEEK_END);
  void* map =
      mmap(nullptr, static_cast<std::size_t>(size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return map == MAP_FAILED ? nullptr : static_cast<unsigned char*>(map);
}

inline const int number = ReadNumber();  // the mutant that acts
inline unsigned char* const reached = MapReached();

constexpr unsigned char kReached = 1;
constexpr unsigned char kNoSuchOperator = 2;

template <int id>
bool On() {
  if (reached != nullptr) reached[id] = kReached;
  return number == id;
}

template <int id, typename T>
T Number(T value) {
  if (!On<id>()) return value;
  if constexpr (std::is_floating_point_v<T>) return value == 0 ? T{1} : 2 * value;
  return value + 1;
}

template <int id>
bool Truth(bool value) {
  return value != On<id>();
}

template <int id, typename T>
bool Condition(T&& value) {
  return static_cast<bool>(value) != On<id>();
}

// `a + Operator<id>() + b` is a + b, or a - b when the mutant acts. It binds as the operator does.
template <int id>
struct Operator {};

template <int id, typename L>
struct Left {
  L&& value;
};

#define MUTANT_OPERATOR(before, after)                                                             \
  template <int id, typename L>                                                                    \
  Left<id, L> operator before(L&& left, Operator<id>) {                                            \
    return {std::forward<L>(left)};                                                                \
  }                                                                                                \
  template <int id, typename L, typename R>                                                        \
  auto operator before(Left<id, L> left, R&& right) {                                              \
    using Result =                                                                                 \
        std::decay_t<decltype(std::forward<L>(left.value) before std::forward<R>(right))>;         \
    constexpr bool kThere = requires {                                                             \
      { std::forward<L>(left.value) after std::forward<R>(right) } -> std::convertible_to<Result>; \
    };                                                                                             \
    if constexpr (kThere) {                                                                        \
      if (On<id>()) {                                                                              \
        return static_cast<Result>(std::forward<L>(left.value) after std::forward<R>(right));      \
      }                                                                                            \
    } else if (reached != nullptr) {                                                               \
      reached[id] = kNoSuchOperator;                                                               \
    }                                                                                              \
    return static_cast<Result>(std::forward<L>(left.value) before std::forward<R>(right));         \
  }

MUTANT_OPERATOR(+, -)
MUTANT_OPERATOR(-, +)
MUTANT_OPERATOR(*, /)
MUTANT_OPERATOR(/, *)
MUTANT_OPERATOR(<, <=)
MUTANT_OPERATOR(<=, <)
MUTANT_OPERATOR(>, >=)
MUTANT_OPERATOR(>=, >)
MUTANT_OPERATOR(==, !=)
MUTANT_OPERATOR(!=, ==)

#undef MUTANT_OPERATOR

}  // namespace mutant
