import sys

print(f"Helo, {sys.argv[1]}!", flush=True)
