# Sourced by tools/demo and tools/test: phases with their times, and what to run when one fails.

phase_times=()

# phase NAME COMMAND...: runs it with its output shown, and says how long it took.
phase() {
  local name=$1 start=$SECONDS
  shift
  printf '\n\033[1m== %s\033[0m: %s\n' "$name" "$*"
  if ! "$@"; then
    printf '\n== %s FAILED after %d s. To see it alone, run:\n  %s\n' "$name" $((SECONDS - start)) "$*" >&2
    exit 1
  fi
  phase_times+=("$(printf '%6d s  %s' $((SECONDS - start)) "$name")")
}

# Prints the phases so far, and their sum.
phase_summary() {
  printf '\n'
  printf '%s\n' "${phase_times[@]}"
  printf '%6d s  in all\n' "$SECONDS"
}
