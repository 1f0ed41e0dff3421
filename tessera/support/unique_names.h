#pragma once

#include <map>
#include <string>

namespace tessera {

/// Generator of unique names: a name that is requested again gets a numeric suffix (`y`, `y_1`,
/// `y_2`, …).
class UniqueNames {
 public:
  void take(const std::string& name) { next_.emplace(name, 1); }

  std::string unique(const std::string& wanted) {
    const auto [found, fresh] = next_.emplace(wanted, 1);
    if (fresh) return wanted;
    // The number goes on where it stopped, so that many equal names take linear time.
    for (int& number = found->second;;) {
      std::string name = wanted + "_" + std::to_string(number++);
      if (next_.emplace(name, 1).second) return name;
    }
  }

 private:
  std::map<std::string, int> next_;  // the number to try next
};

}  // namespace tessera
