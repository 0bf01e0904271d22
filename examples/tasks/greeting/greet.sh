# Greets a visitor: greet.sh NAME
echo "Hello."
