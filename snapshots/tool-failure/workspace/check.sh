echo 'checking …'
echo 'config.ini: missing' >&2
exit 3
