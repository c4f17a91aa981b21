"""Write cards and publish folders on the Hub."""
