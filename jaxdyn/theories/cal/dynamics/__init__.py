"""What the theory predicts: closed forms, and the equations of finite step sizes."""
