#include "tessera/support/intern_table.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tessera {
namespace {

const std::string* interned(InternTable<std::string>& table, const std::string& text,
                            std::uint64_t hash) {
  return &table.find_or_add(
      hash, [&](const std::string& other) { return other == text; },
      [&] { return std::make_unique<std::string>(text); });
}

TEST(InternTable, EqualObjectsAreOneObjectAndStayWhereTheyAre) {
  InternTable<std::string> table;
  std::vector<const std::string*> first;
  for (int i = 0; i < 5'000; ++i)
    first.push_back(
        interned(table, std::to_string(i), std::hash<std::string>()(std::to_string(i))));
  for (int i = 0; i < 5'000; ++i) {
    EXPECT_EQ(*first[static_cast<std::size_t>(i)], std::to_string(i));
    EXPECT_EQ(interned(table, std::to_string(i), std::hash<std::string>()(std::to_string(i))),
              first[static_cast<std::size_t>(i)]);
  }
}

TEST(InternTable, ObjectsOfOneHashAreToldApart) {
  InternTable<std::string> table;
  for (const std::uint64_t hash : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const std::string *a = interned(table, "a", hash), *b = interned(table, "b", hash);
    EXPECT_NE(a, b);
    for (int i = 0; i < 200; ++i) interned(table, std::to_string(i), hash);
    EXPECT_EQ(interned(table, "a", hash), a);
    EXPECT_EQ(interned(table, "b", hash), b);
  }
}

TEST(InternTable, ThreadsShareObjects) {
  InternTable<std::string> table;
  std::vector<std::vector<const std::string*>> found(4);
  std::vector<std::thread> threads;
  for (auto& own : found)
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i)
        own.push_back(interned(table, std::to_string(i), static_cast<std::uint64_t>(i) << 56));
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& own : found) EXPECT_EQ(own, found[0]);
}

}  // namespace
}  // namespace tessera
