n=0; for i in $(seq 1 $2); do timeout 20 $1 /tmp/w/prog.py >/dev/null 2>&1 || n=$((n+1)); done; echo "$1 fails $n of $2"
