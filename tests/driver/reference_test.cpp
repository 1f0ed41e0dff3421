#include "tessera/driver/reference.h"

#include <gtest/gtest.h>

#include "tessera/support/file.h"

namespace tessera {
namespace {

TEST(OperatorReference, IsWhatTheDocumentSays) {
  const auto document = read_text(TESSERA_SOURCE_DIR "/docs/operators.md");
  ASSERT_TRUE(document) << to_string(document.error());
  EXPECT_EQ(*document, operator_reference())
      << "refresh it: build/release/tessera operators > docs/operators.md";
}

}  // namespace
}  // namespace tessera
