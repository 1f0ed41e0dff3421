#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <utility>

namespace tessera {

/// Vector with inline storage for up to N elements; more elements are stored on the heap (like
/// llvm::SmallVector).
template <class T, std::size_t N>
class SmallVector {
 public:
  using value_type = T;

  SmallVector() : data_(inline_data()) {}
  SmallVector(std::initializer_list<T> items) : SmallVector() {
    append(items.begin(), items.end());
  }
  SmallVector(const SmallVector& other) : SmallVector() { append(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      clear();
      append(other.begin(), other.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { release(); }

  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  void reserve(std::size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }
  void push_back(T item) { emplace_back(std::move(item)); }
  /// Constructs an element at the end; arguments must not refer to elements of this vector.
  template <class... Args>
  void emplace_back(Args&&... args) {
    if (size_ == capacity_) grow(2 * capacity_);
    std::construct_at(data_ + size_, std::forward<Args>(args)...);
    ++size_;
  }
  /// Appends a range, which must not belong to this vector.
  template <class Iterator>
  void append(Iterator first, Iterator last) {
    reserve(size_ + static_cast<std::size_t>(std::distance(first, last)));
    size_ = static_cast<std::uint32_t>(std::uninitialized_copy(first, last, end()) - data_);
  }
  void erase(T* here) {
    std::move(here + 1, end(), here);
    shrink(size_ - 1);
  }
  template <class Predicate>
  void erase_if(Predicate predicate) {
    shrink(static_cast<std::size_t>(std::remove_if(begin(), end(), predicate) - data_));
  }
  void clear() { shrink(0); }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  void shrink(std::size_t size) {
    std::destroy(data_ + size, end());
    size_ = static_cast<std::uint32_t>(size);
  }
  void release() {
    clear();
    if (data_ != inline_data()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = inline_data();
    capacity_ = N;
  }
  void grow(std::size_t capacity) {
    T* data = std::allocator<T>().allocate(capacity);
    const std::uint32_t size = size_;
    std::uninitialized_move(begin(), end(), data);
    release();
    data_ = data;
    size_ = size;
    capacity_ = static_cast<std::uint32_t>(capacity);
  }
  /// Moves the content of `other` into this vector, which is empty and uses its inline storage.
  void take(SmallVector& other) noexcept {
    if (other.data_ != other.inline_data()) {
      data_ = std::exchange(other.data_, other.inline_data());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
      return;
    }
    std::uninitialized_move(other.begin(), other.end(), data_);
    size_ = other.size_;
    other.clear();
  }

  T* data_;
  std::uint32_t size_ = 0, capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace tessera
