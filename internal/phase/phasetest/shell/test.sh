failed=0
check() {
  if [ "$2" != "$3" ]; then
    echo "FAIL: $1 (add.sh)"
    failed=1
  fi
}
check test_add "$(sh add.sh 2 2)" 4
check test_zero "$(sh add.sh 0 0)" 0
exit $failed
