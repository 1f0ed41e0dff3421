#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "tessera/support/bytes.h"
#include "tessera/support/expected.h"

namespace tessera {

/// Maps a regular file read-only; pages are read when they are accessed first.
Expected<Bytes> map_file(const std::filesystem::path& path);
/// Maps a file as `map_file` does, but refuses a symbolic link.
Expected<Bytes> map_file_itself(const std::filesystem::path& path);

/// Reads a whole file as text; a file larger than `limit` bytes is a diagnostic.
Expected<std::string> read_text(const std::filesystem::path& path,
                                std::size_t limit = std::size_t{256} << 20);

/// Writes a file by way of a temporary one beside it and a rename, so that a reader sees the old
/// content or the new, never a part; it is on the disk when this returns. A symbolic link is
/// followed, a device or pipe is written into.
Expected<Done> write_file(const std::filesystem::path& path,
                          const std::function<void(std::ostream&)>& content);

/// Turns any name into a valid file name.
std::string file_name(std::string name);

}  // namespace tessera
